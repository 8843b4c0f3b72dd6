// Redis's settings, with the names of envoyproxy/ratelimit, and the connection options derived from
// them. Reads the files of secrets; does not connect.
import { ConfigError, type ConfigOf, fileSettings, type Setting } from '../../config/config.ts'
import { durationSetting } from '../../config/duration-setting.ts'
import { flagSetting, optionalString, stringSetting } from '../../config/settings.ts'
import type { RedisAuth, RedisConnectionOptions, RedisTls } from './connection-options.ts'
import { planWithSecretFiles, readSecret, secretFileSetting } from './secret-files.ts'
import { keywordSetting } from './setting-kinds.ts'
import { parseTarget, redisTypes, socketTypes, targetForm } from './target.ts'

const TIMEOUT = { min: '10ms', max: '1m', fallback: '1s' }

type Prefix = 'REDIS_' | 'REDIS_PERSECOND_'

/** Settings of one Redis; their names start with `prefix`. */
function serverSettings<P extends Prefix>(prefix: P, server: string) {
  const settings = {
    SOCKET_TYPE: keywordSetting(`socket type of ${server}`, {
      keywords: socketTypes,
      fallback: 'unix if the address is a path, else tcp',
    }),
    TYPE: keywordSetting(`deployment of ${server}`, { keywords: redisTypes, fallback: 'SINGLE' }),
    URL: optionalString(
      `address of ${server}: host:port, redis://…, rediss://…, a path, or a list`,
      true,
    ),
    URL_FILE: secretFileSetting(`${prefix}URL`),
    AUTH: optionalString(`password of ${server}, or user:password`, true),
    AUTH_FILE: secretFileSetting(`${prefix}AUTH`),
    SENTINEL_AUTH: optionalString(`password of its Redis Sentinels, or user:password`, true),
    SENTINEL_AUTH_FILE: secretFileSetting(`${prefix}SENTINEL_AUTH`),
    TLS: flagSetting(`whether ${server} uses TLS`, false),
    TIMEOUT: durationSetting(`timeout of connecting to ${server} and of each call`, TIMEOUT),
  }
  const named = Object.entries(settings).map(([name, setting]) => [prefix + name, setting] as const)
  return Object.fromEntries(named) as {
    readonly [K in keyof typeof settings as `${P}${K}`]: (typeof settings)[K]
  }
}

/** Settings of the counters' Redis. */
export const redisSettings = {
  ...serverSettings('REDIS_', 'Redis'),
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
  ...serverSettings('REDIS_PERSECOND_', 'the Redis for limits per second'),
  REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: flagSetting(
    'whether the health check fails while Redis is unavailable',
    false,
  ),
  CACHE_KEY_PREFIX: stringSetting("prefix of each counter's key in Redis", ''),
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

/** The check of the settings that depend on each other, and of their files. */
export const redisFileChecks = fileSettings(redisSettings, planRedis)

/** Derives the options of one server. Throws ConfigError. */
function planConnection(config: RedisConfig, prefix: Prefix): RedisConnectionOptions {
  return planWithSecretFiles({
    credentials: [
      config[`${prefix}URL_FILE`],
      config[`${prefix}AUTH_FILE`],
      config[`${prefix}SENTINEL_AUTH_FILE`],
    ],
    tls: config,
    plan: (tls, problems) => connectionOf(config, { prefix, tls, problems }),
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
  const [url, auth, sentinelAuth] = [secretOf('URL'), secretOf('AUTH'), secretOf('SENTINEL_AUTH')]
  const form = targetForm(type, socketType)
  const isFile = config[`${prefix}URL_FILE`] !== undefined
  if (url === undefined) {
    if (!isFile) problems.push(`${prefix}URL is required: ${form}`)
    return undefined
  }
  const parsed = parseTarget(url, { type, socketType })
  if (parsed === undefined) {
    const subject = isFile ? `the file of ${prefix}URL_FILE must contain` : `${prefix}URL must be`
    problems.push(`${subject} ${form}: current value is hidden`)
    return undefined
  }
  if (auth !== undefined && parsed.auth !== undefined) {
    problems.push(`${prefix}AUTH is set, and ${prefix}URL also contains a password: remove one`)
  }
  return {
    target: parsed.target,
    database: parsed.database,
    auth: parseAuth(auth ?? parsed.auth),
    sentinelAuth: parseAuth(sentinelAuth),
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
