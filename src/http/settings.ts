// The settings of every role that serves the public HTTP or the admin API.
import * as z from 'zod'
import { parseHost } from '../links/target-url.ts'
import { dependentSettings, type Setting } from '../config/config.ts'
import { portSetting } from '../config/settings.ts'

const originSchema = z.string().transform((value, context) => {
  const url = URL.parse(value)
  const rest = url && url.pathname + url.search + url.hash + url.username + url.password
  if (url !== null && rest === '/' && /^https?:\/\//i.test(value)) return url.origin
  context.addIssue({ code: 'custom', message: 'no origin' })
  return z.NEVER
})

/** An origin such as `https://cur.tl`, without a trailing slash; `undefined` if unset. */
export const baseUrlSetting: Setting<string | undefined> = {
  about: 'public base URL of short links',
  allowed: 'an http:// or https:// URL without path, query or user',
  fallback: 'http://localhost:<PORT>',
  schema: originSchema.optional(),
}

/** BASE_URL of a process behind an edge: required, because no default would be right. */
export const publicBaseSetting: Setting<string> = {
  ...baseUrlSetting,
  fallback: 'required',
  schema: originSchema,
}

/** BASE_URL of a process that uses it only in problem documents; unset: they have just the path. */
export const problemBaseSetting: Setting<string> = {
  about: 'public base URL of the problem types in error responses',
  allowed: 'an http:// or https:// URL without path, query or user',
  fallback: 'none: only the path',
  schema: baseUrlSetting.schema.transform((origin) => origin ?? ''),
}

/** The service's own hosts besides BASE_URL's, as `parseHost` normalizes them. */
export const ownHostsSetting: Setting<readonly string[]> = {
  about: 'additional host names of this service; links to them are rejected',
  allowed: 'host names separated by commas',
  fallback: 'none',
  schema: z
    .string()
    .optional()
    .transform((value, context) => {
      const hosts = (value ?? '').split(',').flatMap((item) => {
        if (item.trim() === '') return []
        const host = parseHost(item.trim())
        if (host === undefined) context.addIssue({ code: 'custom', message: 'no host' })
        return host === undefined ? [] : [host]
      })
      return hosts
    }),
}

/** The status of redirects. */
export const redirectStatusSetting: Setting<301 | 302> = {
  about: 'status of redirects; browsers cache a 301 for up to 5 minutes',
  allowed: '302 or 301',
  fallback: '302',
  schema: z
    .enum(['301', '302'])
    .optional()
    .transform((value) => (value === '301' ? 301 : 302)),
}

/** PORT. */
export const publicPortSetting = portSetting('port of the public HTTP server', 8080)
/** ADMIN_PORT. */
export const adminPortSetting = portSetting(
  'port of /livez, /readyz, /metrics and, except in redirect, the admin API',
  9090,
)

/** The listeners of a process need different ports; 0 is any free one. */
export const distinctPorts = dependentSettings(
  { PORT: publicPortSetting, ADMIN_PORT: adminPortSetting },
  ({ PORT: port, ADMIN_PORT: adminPort }) =>
    port === adminPort && port !== 0
      ? [`PORT and ADMIN_PORT must be different: both are ${port}`]
      : [],
)

/** ADMIN_TOKEN; `undefined` if unset. */
export const adminTokenSetting: Setting<string | undefined> = {
  about: 'bearer token that the admin API requires',
  allowed: '1 to 256 visible ASCII characters',
  fallback: 'unset: the admin API is disabled (standalone: enabled on loopback)',
  secret: true,
  schema: z
    .string()
    .regex(/^[\x21-\x7e]{1,256}$/)
    .optional(),
}

/** The hosts that no link may point to. */
export function ownHostsOf(baseUrl: string, further: readonly string[]): ReadonlySet<string> {
  const host = parseHost(new URL(baseUrl).host)
  return new Set([...(host === undefined ? [] : [host]), ...further])
}
