// A link of another shortener, before its times and its code are checked.
import type { ParsedRow } from '../format.ts'
import { parseLinkRow } from '../link-row.ts'

/** The values of one link; times in any form that `utcTimeOf` reads, '' or `null` = absent. */
export interface ForeignLink {
  readonly code: string
  readonly target: string
  readonly createdAt?: string | null | undefined
  readonly expiresAt?: string | null | undefined
  readonly isDisabled?: boolean
}

/** The row of a link. */
export function rowOf(row: number, link: ForeignLink): ParsedRow {
  const parsed = parseLinkRow({
    short_code: link.code,
    long_url: link.target,
    created_at: emptyToNull(link.createdAt),
    expires_at: emptyToNull(link.expiresAt),
    state: link.isDisabled === true ? 'disabled' : 'active',
  })
  return 'row' in parsed
    ? { row, link: parsed.row }
    : { row, fault: parsed.fault, code: link.code === '' ? null : link.code }
}

function emptyToNull(value: string | null | undefined): string | null {
  return value == null || value === '' ? null : value
}

/** The code in a short URL, which may lack its scheme; '' if it has none. */
export function codeInUrl(shortUrl: string): string {
  const url = URL.parse(/^https?:\/\//i.test(shortUrl) ? shortUrl : `https://${shortUrl}`)
  const path = url?.pathname.slice(1) ?? ''
  try {
    return decodeURIComponent(path)
  } catch {
    return path // an invalid escape: not a code that can be kept
  }
}
