// Sends a page with the headers that every page has.
import type { ServerResponse } from 'node:http'
import { pageHeaders } from '../page-headers.ts'

/** A page and how it is answered. */
export interface Page {
  readonly status: number
  readonly text: string
  readonly cacheControl: string
  /** Further headers; those of every page win. */
  readonly headers?: Readonly<Record<string, string>>
}

/** For pages that are the same for everybody until the next release. */
export const CACHED_BRIEFLY = 'public, max-age=300'

/** Answers with `page`. */
export function sendPage(res: ServerResponse, page: Page): void {
  res.writeHead(page.status, {
    ...page.headers,
    ...pageHeaders,
    'Cache-Control': page.cacheControl,
    'Content-Length': Buffer.byteLength(page.text),
  })
  res.end(page.text)
}
