// Redis's settings, with the names of envoyproxy/ratelimit, and the connection options derived from
// them. Reads the files of secrets; does not connect.
import { createSecureContext } from 'node:tls'
import { ConfigError, type ConfigOf, type Setting } from '../../config/config.ts'
import { durationSetting } from '../../config/duration-setting.ts'
import { flagSetting, optionalString, readPem, stringSetting } from '../../config/settings.ts'
import { checkAuthorities } from '../../process/tls-files.ts'
import type { RedisAuth, RedisConnectionOptions, RedisTls } from './connection-options.ts'
import { planWithSecretFiles, readSecret, secretFileSetting } from './secret-files.ts'
import { keywordSetting } from './setting-kinds.ts'
import { parseTarget, redisTypes, socketTypes, targetForm } from './target.ts'

const TIMEOUT = { min: '10ms', max: '1m', fallback: '1s' }

type Prefix = 'REDIS_' | 'REDIS_PERSECOND_'

/** Settings of one Redis; their names start with `prefix`. */
function serverSettings(prefix: Prefix, server: string) {
  return {
    socketType: keywordSetting(`socket type of ${server}`, {
      keywords: socketTypes,
      fallback: 'unix if the address is a path, else tcp',
    }),
    type: keywordSetting(`deployment of ${server}`, { keywords: redisTypes, fallback: 'SINGLE' }),
    url: optionalString(
      `address of ${server}: host:port, redis://…, rediss://…, a path, or a list`,
      true,
    ),
    urlFile: secretFileSetting(`${prefix}URL`),
    auth: optionalString(`password of ${server}, or user:password`, true),
    authFile: secretFileSetting(`${prefix}AUTH`),
    sentinelAuth: optionalString(`password of its Redis Sentinels, or user:password`, true),
    sentinelAuthFile: secretFileSetting(`${prefix}SENTINEL_AUTH`),
    tls: flagSetting(`whether ${server} uses TLS`, false),
    timeout: durationSetting(`timeout of connecting to ${server} and of each call`, TIMEOUT),
  }
}

const main = serverSettings('REDIS_', 'Redis')
const perSecond = serverSettings('REDIS_PERSECOND_', 'the Redis for limits per second')

/** Settings of the counters' Redis. */
export const redisSettings = {
  REDIS_SOCKET_TYPE: main.socketType,
  REDIS_TYPE: main.type,
  REDIS_URL: main.url,
  REDIS_URL_FILE: main.urlFile,
  REDIS_AUTH: main.auth,
  REDIS_AUTH_FILE: main.authFile,
  REDIS_SENTINEL_AUTH: main.sentinelAuth,
  REDIS_SENTINEL_AUTH_FILE: main.sentinelAuthFile,
  REDIS_TLS: main.tls,
  REDIS_TIMEOUT: main.timeout,
  REDIS_TLS_CACERT: optionalString(
    'file of the CA certificates that verify the certificates of all Redis servers',
  ),
  REDIS_TLS_CLIENT_CERT: optionalString('file of the client certificate for all Redis servers'),
  REDIS_TLS_CLIENT_KEY: optionalString('file of the key of REDIS_TLS_CLIENT_CERT'),
  REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: flagSetting(
    'whether to accept a Redis certificate for another host name',
    false,
  ),
  REDIS_PERSECOND: flagSetting(
    'whether the counters of limits per second are in a separate Redis',
    false,
  ),
  REDIS_PERSECOND_SOCKET_TYPE: perSecond.socketType,
  REDIS_PERSECOND_TYPE: perSecond.type,
  REDIS_PERSECOND_URL: perSecond.url,
  REDIS_PERSECOND_URL_FILE: perSecond.urlFile,
  REDIS_PERSECOND_AUTH: perSecond.auth,
  REDIS_PERSECOND_AUTH_FILE: perSecond.authFile,
  REDIS_PERSECOND_SENTINEL_AUTH: perSecond.sentinelAuth,
  REDIS_PERSECOND_SENTINEL_AUTH_FILE: perSecond.sentinelAuthFile,
  REDIS_PERSECOND_TLS: perSecond.tls,
  REDIS_PERSECOND_TIMEOUT: perSecond.timeout,
  REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: flagSetting(
    'whether the health check fails while Redis is unavailable',
    false,
  ),
  CACHE_KEY_PREFIX: stringSetting('prefix of each key in Redis', ''),
} as const satisfies Readonly<Record<string, Setting<unknown>>>

/** Values of `redisSettings`. */
export type RedisConfig = ConfigOf<typeof redisSettings>

/** The connection options derived from the settings. */
export interface RedisPlan {
  readonly main: RedisConnectionOptions
  /** `undefined`: limits per second use `main`. */
  readonly perSecond: RedisConnectionOptions | undefined
  readonly keyPrefix: string
}

/** Derives the options. Throws ConfigError with every problem, one line each. */
export function planRedis(config: RedisConfig): RedisPlan {
  const problems: string[] = []
  const planServer = (prefix: Prefix) => {
    try {
      return planConnection(config, prefix)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
      return undefined
    }
  }
  const first = planServer('REDIS_')
  const second = config.REDIS_PERSECOND ? planServer('REDIS_PERSECOND_') : undefined
  if (problems.length > 0 || first === undefined) throw new ConfigError([...new Set(problems)])
  return { main: first, perSecond: second, keyPrefix: config.CACHE_KEY_PREFIX }
}

/** Derives the options of one server. Throws ConfigError. */
function planConnection(config: RedisConfig, prefix: Prefix): RedisConnectionOptions {
  return planWithSecretFiles({
    credentials: [
      config[`${prefix}URL_FILE`],
      config[`${prefix}AUTH_FILE`],
      config[`${prefix}SENTINEL_AUTH_FILE`],
    ],
    tls: tlsPathsOf(config),
    plan: (problems, tlsProblems) => {
      const tls = tlsOf(config, tlsProblems)
      const options = connectionOf(config, { prefix, tls, problems })
      if (options?.tls !== undefined) checkTls(tls, tlsProblems)
      return options
    },
    urlName: `${prefix}URL`,
  })
}

interface ConnectionContext {
  readonly prefix: Prefix
  readonly tls: RedisTls
  /** Problems are appended here. */
  readonly problems: string[]
}

function connectionOf(
  config: RedisConfig,
  { prefix, tls, problems }: ConnectionContext,
): RedisConnectionOptions | undefined {
  const secretOf = (name: 'URL' | 'AUTH' | 'SENTINEL_AUTH') => {
    const [value, file] = [config[`${prefix}${name}`], config[`${prefix}${name}_FILE`]]
    return file === undefined ? value : readSecret(`${prefix}${name}_FILE`, file, problems)
  }
  const type = config[`${prefix}TYPE`] ?? 'SINGLE'
  const socketType = config[`${prefix}SOCKET_TYPE`]
  const url = secretOf('URL')
  const form = targetForm(type, socketType)
  if (url === undefined) {
    const isFile = config[`${prefix}URL_FILE`] !== undefined
    if (!isFile) problems.push(`${prefix}URL is required: ${form}`)
    return undefined
  }
  const parsed = parseTarget(url, { type, socketType })
  if (parsed === undefined) {
    problems.push(`${prefix}URL must be ${form}: current value is hidden`)
    return undefined
  }
  const auth = secretOf('AUTH')
  if (auth !== undefined && parsed.auth !== undefined) {
    problems.push(`${prefix}AUTH is set, and ${prefix}URL also contains a password: remove one`)
  }
  return {
    target: parsed.target,
    database: parsed.database,
    auth: parseAuth(auth ?? parsed.auth),
    sentinelAuth: parseAuth(secretOf('SENTINEL_AUTH')),
    tls: config[`${prefix}TLS`] || parsed.hasTls ? tls : undefined,
    timeoutMs: config[`${prefix}TIMEOUT`],
  }
}

/** Parses `user:password` or a password. */
export function parseAuth(auth: string | undefined): RedisAuth | undefined {
  if (auth === undefined) return undefined
  const colon = auth.indexOf(':')
  if (colon === -1) return { password: auth }
  return { username: auth.slice(0, colon) || undefined, password: auth.slice(colon + 1) }
}

/** TLS settings of every Redis of a process. */
export type RedisTlsConfig = Pick<
  RedisConfig,
  'REDIS_TLS_CACERT' | 'REDIS_TLS_CLIENT_CERT' | 'REDIS_TLS_CLIENT_KEY'
> & { readonly REDIS_TLS_SKIP_HOSTNAME_VERIFICATION?: boolean }

/** The paths of the PEM files, if set. */
export function tlsPathsOf(config: RedisTlsConfig): readonly (string | undefined)[] {
  return [config.REDIS_TLS_CACERT, config.REDIS_TLS_CLIENT_CERT, config.REDIS_TLS_CLIENT_KEY]
}

/** Reads the PEM files of these settings; appends to `problems`. */
export function tlsOf(config: RedisTlsConfig, problems: string[]): RedisTls {
  const pemOf = (name: 'REDIS_TLS_CACERT' | 'REDIS_TLS_CLIENT_CERT' | 'REDIS_TLS_CLIENT_KEY') =>
    readPem(name, config[name], problems)
  const hasCert = config.REDIS_TLS_CLIENT_CERT !== undefined
  if (hasCert !== (config.REDIS_TLS_CLIENT_KEY !== undefined)) {
    const [given, missing] = hasCert ? ['CERT', 'KEY'] : ['KEY', 'CERT']
    problems.push(
      `REDIS_TLS_CLIENT_${missing} is required if REDIS_TLS_CLIENT_${given} is set: a file`,
    )
  }
  const ca = pemOf('REDIS_TLS_CACERT')
  const [cert, key] = [pemOf('REDIS_TLS_CLIENT_CERT'), pemOf('REDIS_TLS_CLIENT_KEY')]
  return { ca, cert, key, isHostChecked: config.REDIS_TLS_SKIP_HOSTNAME_VERIFICATION !== true }
}

/**
 * Checks the certificates, and that the key is that of the client's certificate: while files are
 * replaced, it may not be. Appends to `problems`.
 */
export function checkTls({ ca, cert, key }: RedisTls, problems: string[]): void {
  try {
    if (ca !== undefined) checkAuthorities(ca)
  } catch {
    problems.push('REDIS_TLS_CACERT must contain valid certificates')
  }
  if (cert === undefined || key === undefined) return
  try {
    createSecureContext({ cert, key })
  } catch {
    problems.push('REDIS_TLS_CLIENT_KEY must be the key of REDIS_TLS_CLIENT_CERT')
  }
}
