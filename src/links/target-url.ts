// The URLs that a link may have as target, and their stored form.

/** Maximum length of a target, in characters, as sent and as stored. */
export const TARGET_LENGTH_MAX = 2048

/** The fault of a target; the API returns these strings. */
export type TargetFault =
  'too-long' | 'surrounding-space' | 'not-absolute-http' | 'not-a-url' | 'credentials' | 'own-host'

/** A valid target, or its fault. */
export type ParsedTarget = { readonly longUrl: string } | { readonly fault: TargetFault }

const surroundingSpace = /^[\s\p{White_Space}\u0000-\u0020]|[\s\p{White_Space}\u0000-\u0020]$/u
const bothSlashes = /^https?:\/\//i
const visibleAscii = /^[\x21-\x7e]+$/
/** Characters that the parser removes at any position. */
const removedByParser = /[\t\n\r]/g
/** The authority as the parser delimits it: after any number of slashes or backslashes. */
const authority = /^https?:[/\\]*([^/\\?#]*)/i

/**
 * Validates `text` with the WHATWG URL parser. A target is stored exactly as sent if all characters
 * are visible ASCII, else in the parser's serialised form. `ownHosts` are results of `parseHost`.
 */
export function parseTargetUrl(text: string, ownHosts: ReadonlySet<string>): ParsedTarget {
  if (text.length > TARGET_LENGTH_MAX) return { fault: 'too-long' }
  if (surroundingSpace.test(text)) return { fault: 'surrounding-space' }
  if (!bothSlashes.test(text)) return { fault: 'not-absolute-http' }
  const url = URL.parse(text)
  if (url === null) return { fault: 'not-a-url' }
  if (hasUserinfo(text)) return { fault: 'credentials' }
  const host = withoutTrailingDots(url.hostname)
  if (host === '') return { fault: 'not-a-url' }
  if (ownHosts.has(host)) return { fault: 'own-host' }
  const longUrl = visibleAscii.test(text) ? text : url.href
  return longUrl.length > TARGET_LENGTH_MAX ? { fault: 'too-long' } : { longUrl }
}

/** The name of a host, normalised by the parser, without port and trailing dots. */
export function parseHost(text: string): string | undefined {
  const url = URL.parse(`http://${text}`)
  const isBare = url?.pathname === '/' && url.search === '' && url.hash === ''
  if (!isBare || hasUserinfo(`http://${text}`)) return undefined
  const host = withoutTrailingDots(url.hostname)
  return host === '' ? undefined : host
}

/** Whether the authority, as sent, contains `@`: the parser drops empty credentials. */
function hasUserinfo(text: string): boolean {
  return authority.exec(text.replace(removedByParser, ''))?.[1]?.includes('@') === true
}

/** `hostname` without the dots at its end. */
export function withoutTrailingDots(hostname: string): string {
  let end = hostname.length
  while (hostname.endsWith('.', end)) end--
  return hostname.slice(0, end)
}
