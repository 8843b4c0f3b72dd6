// Settings of the shared link cache and the connection options derived from them. Reads
// the files of secrets; does not connect.
import * as z from 'zod'
import { type ConfigOf, type Setting, dependentSettings } from '../../config/config.ts'
import type { RedisConnectionOptions, RedisTls } from './connection-options.ts'
import { planWithSecretFiles, readSecret, tlsOf } from './secret-files.ts'
import { parseAuth, redisSettings } from './settings.ts'
import { type ParsedTarget, parseTarget, type RedisType } from './target.ts'

/** The timeout of connecting; each command has its own, shorter one. */
const CONNECT_MS_MAX = 1000

const ALLOWED_URLS = [
  'redis://[user:password@]host[:port][/database],',
  'redis+sentinel://[user:password@]host:port,host:port/master[/database],',
  'or redis+cluster://[user:password@]host:port,host:port; for TLS, rediss instead of redis',
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
  REDIS_URL_FILE: redisSettings.REDIS_URL_FILE,
  REDIS_SENTINEL_AUTH: redisSettings.REDIS_SENTINEL_AUTH,
  REDIS_SENTINEL_AUTH_FILE: redisSettings.REDIS_SENTINEL_AUTH_FILE,
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

type CacheConfig = ConfigOf<typeof cacheSettings>

/** The connection options. Throws ConfigError with every problem, one line each. */
export function planLinkCache(config: CacheConfig): RedisConnectionOptions {
  return planWithSecretFiles({
    credentials: [config.REDIS_URL_FILE, config.REDIS_SENTINEL_AUTH_FILE],
    tls: config,
    plan: (tls, problems) => connectionOf(config, { tls, problems }),
    urlName: 'REDIS_URL',
  })
}

function connectionOf(
  config: CacheConfig,
  { tls, problems }: { readonly tls: RedisTls; readonly problems: string[] },
): RedisConnectionOptions | undefined {
  const { REDIS_URL_FILE: urlFile, REDIS_SENTINEL_AUTH_FILE: authFile } = config
  const sentinelAuth =
    authFile === undefined
      ? config.REDIS_SENTINEL_AUTH
      : readSecret('REDIS_SENTINEL_AUTH_FILE', authFile, problems)
  const url = urlFile === undefined ? config.REDIS_URL : readUrl(urlFile, problems)
  if (url === undefined) return undefined
  return {
    target: url.target,
    database: url.database,
    auth: parseAuth(url.auth),
    sentinelAuth: parseAuth(sentinelAuth),
    tls: url.hasTls ? tls : undefined,
    timeoutMs: CONNECT_MS_MAX,
  }
}

/** The address in a file; appends to `problems`. */
function readUrl(file: string, problems: string[]): ParsedTarget | undefined {
  const text = readSecret('REDIS_URL_FILE', file, problems)
  const parsed = text === undefined ? undefined : parseCacheUrl(text)
  if (text !== undefined && parsed === undefined) {
    const required = `the file of REDIS_URL_FILE must contain ${ALLOWED_URLS}`
    problems.push(`${required}: current value is hidden`)
  }
  return parsed
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
