// Sends a page with the common headers of all pages.
import type { ServerResponse } from 'node:http'
import { pageHeaders } from '../page-headers.ts'

/** A page and its response. */
export interface Page {
  readonly status: number
  readonly body: string
  readonly cacheControl: string
  /** Further headers; the common headers override them. */
  readonly headers?: Readonly<Record<string, string>>
}

/** For pages that are the same for every client until the next release. */
export const CACHED_BRIEFLY = 'public, max-age=300'

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
