// Sends a page with the common headers of all pages.
import type { ServerResponse } from 'node:http'

/** A page and its response. */
export interface Page {
  readonly status: number
  readonly body: string
  readonly cacheControl: string
  /** Further headers; the common headers override them. */
  readonly headers?: Readonly<Record<string, string>>
}

/** For pages that are the same for every client of a language until the next release. */
export const CACHED_BRIEFLY = 'public, max-age=300'

/** The policy allows no other origins, no inline code and no frames. */
const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  Vary: 'Accept-Language',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer-when-downgrade',
} as const

/** Sends `page`. */
export function sendPage(res: ServerResponse, page: Page): void {
  res.writeHead(page.status, {
    ...page.headers,
    ...pageHeaders,
    'Cache-Control': page.cacheControl,
    'Content-Length': Buffer.byteLength(page.body),
  })
  res.end(page.body)
}
