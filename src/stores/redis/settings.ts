// The settings of Redis, by the names that envoyproxy/ratelimit gives them, and what they come to.
// Reads files of certificates; connects to nothing.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { ConfigError, type ConfigOf, type Setting } from '../../config/config.ts'
import { durationSetting } from '../../config/duration-setting.ts'
import { flagSetting } from '../../config/flag-setting.ts'
import { integerSetting, textSetting } from '../../config/settings.ts'
import type { RedisAuth, RedisConnectionOptions, RedisTls } from './connection.ts'
import { optionalText, wordSetting } from './setting-kinds.ts'
import { parseTarget, redisTypes, socketTypes, targetForm } from './target.ts'

const TIMEOUT = { min: '10ms', max: '1m', fallback: '1s' }

const NO_EFFECT = 'has no effect: one connection carries all calls'
const NO_WAIT = 'has no effect: the start never waits for Redis'

/** Settings of one Redis; its names begin with `REDIS_` or `REDIS_PERSECOND_`. */
function poolSettings(of: string) {
  return {
    socketType: wordSetting(`how ${of} is reached`, {
      words: socketTypes,
      fallback: 'unix where the address is a path, else tcp',
    }),
    type: wordSetting(`deployment of ${of}`, { words: redisTypes, fallback: 'SINGLE' }),
    url: optionalText(
      `address of ${of}: host:port, redis://…, rediss://…, a path, or a list`,
      true,
    ),
    auth: optionalText(`password of ${of}, or user:password`, true),
    sentinelAuth: optionalText(`password of its sentinels, or user:password`, true),
    tls: flagSetting(`whether ${of} is reached over TLS`, false),
    timeout: durationSetting(`bound of connecting to ${of} and of each call`, TIMEOUT),
  }
}

const main = poolSettings('Redis')
const perSecond = poolSettings('the Redis for limits per second')

const ignored = {
  poolSize: integerSetting(NO_EFFECT, { min: 1, max: 999_999, fallback: 10 }),
  window: textSetting('has no effect: the calls of one turn of the event loop share a script', '0'),
  limit: integerSetting(NO_EFFECT, { min: 0, max: 999_999, fallback: 0 }),
  parallelism: integerSetting('has no effect: the slots of a call go out side by side', {
    min: 0,
    max: 999_999,
    fallback: 1,
  }),
  onEmpty: textSetting(NO_EFFECT, 'WAIT'),
  startup: (fallback: string) => textSetting(NO_WAIT, fallback),
}

/** Settings of the counters' Redis. */
export const redisSettings = {
  REDIS_SOCKET_TYPE: main.socketType,
  REDIS_TYPE: main.type,
  REDIS_URL: main.url,
  REDIS_AUTH: main.auth,
  REDIS_SENTINEL_AUTH: main.sentinelAuth,
  REDIS_TLS: main.tls,
  REDIS_TIMEOUT: main.timeout,
  REDIS_TLS_CACERT: optionalText(
    'file of the authorities that Redis is checked by, for every Redis',
  ),
  REDIS_TLS_CLIENT_CERT: optionalText('file of the certificate shown to every Redis'),
  REDIS_TLS_CLIENT_KEY: optionalText('file of its key'),
  REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: flagSetting(
    'whether the certificate of Redis may name another host',
    false,
  ),
  REDIS_PERSECOND: flagSetting('whether limits per second have a Redis of their own', false),
  REDIS_PERSECOND_SOCKET_TYPE: perSecond.socketType,
  REDIS_PERSECOND_TYPE: perSecond.type,
  REDIS_PERSECOND_URL: perSecond.url,
  REDIS_PERSECOND_AUTH: perSecond.auth,
  REDIS_PERSECOND_SENTINEL_AUTH: perSecond.sentinelAuth,
  REDIS_PERSECOND_TLS: perSecond.tls,
  REDIS_PERSECOND_TIMEOUT: perSecond.timeout,
  REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: flagSetting(
    'whether health fails while Redis does not answer',
    false,
  ),
  CACHE_KEY_PREFIX: textSetting('put before each key in Redis', ''),
  REDIS_POOL_SIZE: ignored.poolSize,
  REDIS_PERSECOND_POOL_SIZE: ignored.poolSize,
  REDIS_PIPELINE_WINDOW: ignored.window,
  REDIS_PERSECOND_PIPELINE_WINDOW: ignored.window,
  REDIS_PIPELINE_LIMIT: ignored.limit,
  REDIS_PERSECOND_PIPELINE_LIMIT: ignored.limit,
  REDIS_CLUSTER_PIPELINE_PARALLELISM: ignored.parallelism,
  REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: ignored.parallelism,
  REDIS_POOL_ON_EMPTY_BEHAVIOR: ignored.onEmpty,
  REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: ignored.onEmpty,
  REDIS_STARTUP_INITIAL_INTERVAL: ignored.startup('1s'),
  REDIS_STARTUP_MAX_INTERVAL: ignored.startup('30s'),
  REDIS_STARTUP_MAX_ELAPSED_TIME: ignored.startup('0'),
} as const satisfies Readonly<Record<string, Setting<unknown>>>

/** Values of `redisSettings`. */
export type RedisConfig = ConfigOf<typeof redisSettings>

/** What the settings come to. */
export interface RedisPlan {
  readonly main: RedisConnectionOptions
  /** `undefined`: limits per second go where the others go. */
  readonly perSecond: RedisConnectionOptions | undefined
  readonly keyPrefix: string
}

/** What the settings come to together. Throws ConfigError with every fault, one line each. */
export function planRedis(config: RedisConfig): RedisPlan {
  const faults: string[] = []
  const tls = tlsOf(config, faults)
  const first = poolOf(config, { prefix: 'REDIS_', tls, faults })
  const second = config.REDIS_PERSECOND
    ? poolOf(config, { prefix: 'REDIS_PERSECOND_', tls, faults })
    : undefined
  if (faults.length > 0 || first === undefined) throw new ConfigError(faults)
  return { main: first, perSecond: second, keyPrefix: config.CACHE_KEY_PREFIX }
}

interface PoolGiven {
  readonly prefix: 'REDIS_' | 'REDIS_PERSECOND_'
  readonly tls: RedisTls
  /** Faults are added here. */
  readonly faults: string[]
}

function poolOf(
  config: RedisConfig,
  { prefix, tls, faults }: PoolGiven,
): RedisConnectionOptions | undefined {
  const type = config[`${prefix}TYPE`] ?? 'SINGLE'
  const socketType = config[`${prefix}SOCKET_TYPE`]
  const url = config[`${prefix}URL`]
  const form = targetForm(type, socketType)
  if (url === undefined) {
    faults.push(`${prefix}URL is required: ${form}`)
    return undefined
  }
  const parsed = parseTarget(url, { type, socketType })
  if (parsed === undefined) {
    faults.push(`${prefix}URL must be ${form}: current value is hidden`)
    return undefined
  }
  const auth = config[`${prefix}AUTH`]
  if (auth !== undefined && parsed.auth !== undefined) {
    faults.push(`${prefix}AUTH is set, and ${prefix}URL names a password too: choose one`)
  }
  const sentinelAuth = config[`${prefix}SENTINEL_AUTH`]
  return {
    target: parsed.target,
    database: parsed.database,
    auth: parseAuth(auth ?? parsed.auth),
    sentinelAuth: parseAuth(sentinelAuth),
    tls: config[`${prefix}TLS`] || parsed.hasTls ? tls : undefined,
    timeoutMs: config[`${prefix}TIMEOUT`],
  }
}

/** Reads `user:password`, or a password alone. */
export function parseAuth(text: string | undefined): RedisAuth | undefined {
  if (text === undefined) return undefined
  const colon = text.indexOf(':')
  if (colon === -1) return { password: text }
  return { username: text.slice(0, colon) || undefined, password: text.slice(colon + 1) }
}

const pem = z.string().includes('-----BEGIN ')

/** Settings of TLS that hold for every Redis of a process. */
export type RedisTlsConfig = Pick<
  RedisConfig,
  'REDIS_TLS_CACERT' | 'REDIS_TLS_CLIENT_CERT' | 'REDIS_TLS_CLIENT_KEY'
> & { readonly REDIS_TLS_SKIP_HOSTNAME_VERIFICATION?: boolean }

/** Reads the files that these settings name; what is wrong with them is added to `faults`. */
export function tlsOf(config: RedisTlsConfig, faults: string[]): RedisTls {
  const textOf = (name: 'REDIS_TLS_CACERT' | 'REDIS_TLS_CLIENT_CERT' | 'REDIS_TLS_CLIENT_KEY') => {
    const file = config[name]
    if (file === undefined) return undefined
    try {
      return pem.parse(readFileSync(file, 'utf8'))
    } catch {
      faults.push(`${name} must name a readable file in PEM: current value is ${file}`)
      return undefined
    }
  }
  const hasCert = config.REDIS_TLS_CLIENT_CERT !== undefined
  if (hasCert !== (config.REDIS_TLS_CLIENT_KEY !== undefined)) {
    const [given, missing] = hasCert ? ['CERT', 'KEY'] : ['KEY', 'CERT']
    faults.push(`REDIS_TLS_CLIENT_${missing} is required beside REDIS_TLS_CLIENT_${given}: a file`)
  }
  return {
    ca: textOf('REDIS_TLS_CACERT'),
    cert: textOf('REDIS_TLS_CLIENT_CERT'),
    key: textOf('REDIS_TLS_CLIENT_KEY'),
    isHostChecked: config.REDIS_TLS_SKIP_HOSTNAME_VERIFICATION !== true,
  }
}
