// The settings of the shared cache of links, and what they come to. Reads files of certificates;
// connects to nothing.
import { z } from 'zod'
import { ConfigError, type ConfigOf, type Setting, together } from '../../config/config.ts'
import type { RedisConnectionOptions } from './connection.ts'
import { parseAuth, redisSettings, tlsOf } from './settings.ts'
import { type ParsedTarget, parseTarget, type RedisType } from './target.ts'

/** Bound of connecting; each command has a shorter one of its own. */
const CONNECT_MS_MAX = 1000

const FORM = [
  'redis://[user:password@]host[:port][/database], or with rediss:// over TLS,',
  'or redis+sentinel://[user:password@]host:port,host:port/master[/database],',
  'or redis+cluster://[user:password@]host:port,host:port',
].join(' ')

/** REDIS_URL of whoever reads or writes links. */
const urlSetting: Setting<ParsedTarget> = {
  about: 'shared cache of links',
  allowed: FORM,
  fallback: 'none, it is required',
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

/** What of the settings must fit together. */
export const cacheTied = [
  together(tlsSettings, (config) => {
    const faults: string[] = []
    tlsOf(config, faults)
    return faults
  }),
]

/** What the settings come to together. Throws ConfigError with every fault, one line each. */
export function planLinkCache(config: ConfigOf<typeof cacheSettings>): RedisConnectionOptions {
  const faults: string[] = []
  const tls = tlsOf(config, faults)
  if (faults.length > 0) throw new ConfigError(faults)
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

const URL_PARTS = new RegExp(
  [
    /^(?<scheme>rediss?)(?:\+(?<kind>sentinel|cluster))?:\/\//,
    /(?<who>[^@/]*@)?(?<hosts>[^@/]+)(?<path>\/.*)?$/,
  ]
    .map(({ source }) => source)
    .join(''),
)

/** What a URL means, or `undefined`: it is not in its form. */
function parseCacheUrl(text: string): ParsedTarget | undefined {
  const { scheme, kind, who = '', hosts = '', path = '' } = URL_PARTS.exec(text)?.groups ?? {}
  if (scheme === undefined) return undefined
  const parse = (target: string, type: RedisType) =>
    parseTarget(target, { type, socketType: 'tcp' })
  if (kind === undefined) return parse(text, 'SINGLE')
  const [, first = '', ...rest] = path.split('/')
  const list = (tail: string) =>
    hosts
      .split(',')
      .map((host) => `${scheme}://${who}${host}${tail}`)
      .join(',')
  if (kind === 'cluster') return path === '' ? parse(list(''), 'CLUSTER') : undefined
  if (rest.length > 1) return undefined
  return parse(`${first},${list(rest.length === 0 ? '' : `/${rest[0] ?? ''}`)}`, 'SENTINEL')
}
