// The form in which targets are compared with blocked entries. URLs for which most servers return
// the same page have the same form.
import { withoutTrailingDots } from './target-url.ts'

/** A URL in normal form. */
export interface NormalTarget {
  /** As the WHATWG URL parser serialises it, without trailing dots; mapped addresses as IPv4. */
  readonly host: string
  /**
   * Path and query, without fragment. In the path, `pathCharacters` are decoded, slashes are
   * merged, and then dot segments are resolved; in the query, `unreserved` ones are decoded.
   */
  readonly path: string
}

const escapes = /%[0-9a-f]{2}/gi
/** The characters that RFC 3986 never requires to be encoded. */
const unreserved = /^[A-Za-z0-9._~-]$/
/** The characters of a path that the parser neither encodes nor interprets, and the slash. */
const pathCharacters = /^[A-Za-z0-9._~!$&'()*+,;=:@|/[\]-]$/
/** IPv6 addresses that contain an IPv4 address: mapped ones, and those of NAT64. */
const mappedAddress = /^\[(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/

/** The normal form of an http or https URL; `undefined` if it cannot be parsed. */
export function normalTargetOf(url: string): NormalTarget | undefined {
  const parsed = URL.parse(url)
  if (parsed === null) return undefined
  const path = normalPathOf(parsed.pathname) + decoded(parsed.search, unreserved)
  return { host: normalHostOf(parsed.hostname), path }
}

function normalPathOf(pathname: string): string {
  const path = decoded(pathname, pathCharacters).replaceAll(/\/{2,}/g, '/')
  return path.includes('/.') ? (URL.parse(`http://host${path}`)?.pathname ?? path) : path
}

/** Decodes the escapes of these characters; writes the hex digits of all others in upper case. */
function decoded(text: string, characters: RegExp): string {
  return text.replace(escapes, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return characters.test(character) ? character : escape.toUpperCase()
  })
}

function normalHostOf(hostname: string): string {
  const mapped = mappedAddress.exec(hostname)
  if (mapped === null) return withoutTrailingDots(hostname)
  const halves = [mapped[1], mapped[2]].map((half = '') => Number.parseInt(half, 16))
  return halves.flatMap((half) => [half >> 8, half & 255]).join('.')
}
