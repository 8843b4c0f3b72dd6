// Settings of the shared link cache and the connection options derived from them. Reads
// certificate files; does not connect.
import { z } from 'zod'
import { ConfigError, type ConfigOf, type Setting, dependentSettings } from '../../config/config.ts'
import type { RedisConnectionOptions } from './connection.ts'
import { parseAuth, redisSettings, tlsOf } from './settings.ts'
import { type ParsedTarget, parseTarget, type RedisType } from './target.ts'

/** The timeout of connecting; each command has its own, shorter one. */
const CONNECT_MS_MAX = 1000

const ALLOWED_URLS = [
  'redis://[user:password@]host[:port][/database], or with rediss:// over TLS,',
  'or redis+sentinel://[user:password@]host:port,host:port/master[/database],',
  'or redis+cluster://[user:password@]host:port,host:port',
].join(' ')

/** REDIS_URL of the roles that read or write links. */
const urlSetting: Setting<ParsedTarget> = {
  about: 'address of the Redis that caches links',
  allowed: ALLOWED_URLS,
  fallback: 'required',
  secret: true,
  schema: z
    .string()
    .transform(parseCacheUrl)
    .refine((parsed) => parsed !== undefined),
}

const tlsSettings = {
  REDIS_TLS_CACERT: redisSettings.REDIS_TLS_CACERT,
  REDIS_TLS_CLIENT_CERT: redisSettings.REDIS_TLS_CLIENT_CERT,
  REDIS_TLS_CLIENT_KEY: redisSettings.REDIS_TLS_CLIENT_KEY,
} as const

/** Settings of the cache's Redis. */
export const cacheSettings = {
  REDIS_URL: urlSetting,
  REDIS_SENTINEL_AUTH: redisSettings.REDIS_SENTINEL_AUTH,
  ...tlsSettings,
} as const satisfies Readonly<Record<string, Setting<unknown>>>

/** The checks of settings that depend on each other. */
export const cacheDependentSettings = [
  dependentSettings(tlsSettings, (config) => {
    const problems: string[] = []
    tlsOf(config, problems)
    return problems
  }),
]

/** The connection options. Throws ConfigError with every problem, one line each. */
export function planLinkCache(config: ConfigOf<typeof cacheSettings>): RedisConnectionOptions {
  const problems: string[] = []
  const tls = tlsOf(config, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  const { target, database, hasTls, auth } = config.REDIS_URL
  return {
    target,
    database,
    auth: parseAuth(auth),
    sentinelAuth: parseAuth(config.REDIS_SENTINEL_AUTH),
    tls: hasTls ? tls : undefined,
    timeoutMs: CONNECT_MS_MAX,
  }
}

const URL_PATTERN = new RegExp(
  [
    /^(?<scheme>rediss?)(?:\+(?<kind>sentinel|cluster))?:\/\//,
    /(?<userinfo>[^@/]*@)?(?<hosts>[^@/]+)(?<path>\/.*)?$/,
  ]
    .map(({ source }) => source)
    .join(''),
)

/** Parses a URL; `undefined` if it is malformed. */
function parseCacheUrl(url: string): ParsedTarget | undefined {
  const { scheme, kind, userinfo = '', hosts = '', path = '' } = URL_PATTERN.exec(url)?.groups ?? {}
  if (scheme === undefined) return undefined
  const parse = (target: string, type: RedisType) =>
    parseTarget(target, { type, socketType: 'tcp' })
  if (kind === undefined) return parse(url, 'SINGLE')
  const [, masterName = '', ...databases] = path.split('/')
  const list = (tail: string) =>
    hosts
      .split(',')
      .map((host) => `${scheme}://${userinfo}${host}${tail}`)
      .join(',')
  if (kind === 'cluster') return path === '' ? parse(list(''), 'CLUSTER') : undefined
  const [database] = databases
  if (databases.length > 1) return undefined
  const sentinels = list(database === undefined ? '' : `/${database}`)
  return parse(`${masterName},${sentinels}`, 'SENTINEL')
}
