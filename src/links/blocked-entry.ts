// One line of a list of blocked targets. `evil.example` blocks all URLs on this host and on its
// subdomains; `sites.example/bad` blocks the URLs on exactly the host `sites.example` whose path,
// with the query, starts with `/bad`. Ports and the scheme http:// or https:// are ignored.
import { normalTargetOf } from './normal-target.ts'

/** A blocked host with its subdomains or, with a path, a blocked prefix of URLs on one host. */
export interface BlockedEntry {
  /** In the normal form of targets. */
  readonly host: string
  /** Path and query in the normal form of targets; `undefined`: the whole host. */
  readonly path: string | undefined
}

/** Maximum length of an entry, in characters: no target is longer. */
export const ENTRY_LENGTH_MAX = 2048

/** A host that is already in normal form, as in most lines. */
const normalHost = /^(?:[a-z0-9_-]+\.)+[a-z][a-z0-9_-]*$/
/** Has the flag `s` because `.` must match the CR at the end of a line. */
const comment = /(?:^|\s)#.*$/s
const scheme = /^https?:\/\//i
const anyScheme = /^[a-z][a-z0-9+.-]*:\/\//i
const authorityOf = /^[^/\\?]*/
const ipAddress = /^(?:\[.*\]|\d+\.\d+\.\d+\.\d+)$/
const addressRange = /^\d+(?:\.\d+){3}\/\d{1,2}$/
const hostCharacters = /^[a-z0-9._-]+$/

/** Parses a line; `undefined` for an empty line or a comment, which starts with `#`. */
export function parseBlockedEntry(line: string): BlockedEntry | { fault: string } | undefined {
  if (line.length <= ENTRY_LENGTH_MAX && normalHost.test(line)) {
    return { host: line, path: undefined }
  }
  const entry = line.replace(comment, '').trim()
  if (entry === '') return undefined
  const url = entry.replace(scheme, '')
  const [authority = ''] = authorityOf.exec(url) ?? []
  const fault = faultOf(url, authority)
  if (fault !== undefined) return { fault }
  const target = normalTargetOf(`http://${url}`)
  if (target === undefined || target.host === '') return { fault: 'has no valid host' }
  const { host, path } = target
  if (!hostCharacters.test(host) && !ipAddress.test(host)) {
    return { fault: 'has characters that no host has' }
  }
  if (!host.includes('.') && host !== 'localhost' && !ipAddress.test(host)) {
    return { fault: `must not be a host of one label, such as a top-level domain: ${host}` }
  }
  return { host, path: authority.length === url.length ? undefined : path }
}

/** Checks an entry before its URL is parsed; returns its fault. `url` is without the scheme. */
function faultOf(url: string, authority: string): string | undefined {
  if (url.length > ENTRY_LENGTH_MAX) return `has more than ${ENTRY_LENGTH_MAX} characters`
  if (/\s/.test(url)) return 'must be one host or one URL: it contains white space'
  if (authority === '') return 'has no valid host'
  if (anyScheme.test(url)) return 'must start with http://, https:// or a host'
  if (authority.includes('*') || authority.startsWith('.')) {
    return 'must not be a pattern: a host includes all its subdomains'
  }
  if (url.endsWith('*')) {
    return 'must not be a pattern: a path includes all paths that start with it'
  }
  if (authority.includes('@')) return 'must not contain a user name or password'
  if (addressRange.test(url)) return 'must not be a range of addresses: list each one'
  if (url.includes('#')) return 'must not contain a fragment: fragments are not compared'
  return undefined
}
