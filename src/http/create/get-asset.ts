// GET /assets/{name}, /favicon.ico and /robots.txt: files for pages and crawlers. Serves only
// files read at startup; no request path ever reaches the file system.
import type { Request, Response } from 'express'
import { sendNotFound } from '../not-found.ts'
import { type Asset, assets } from '../pages/assets.ts'
import type { CreateRouteDeps } from './post-link.ts'

const YEAR_SECONDS = 31_536_000
const DAY_SECONDS = 86_400

/** The file of /robots.txt: search engines must not crawl short links. */
export const robots: Asset = {
  bytes: Buffer.from(`User-agent: *
Allow: /$
Allow: /docs$
Allow: /openapi.json$
Allow: /problems/
Allow: /assets/
Allow: /favicon.ico$
Disallow: /
`),
  contentType: 'text/plain; charset=utf-8',
  hash: '1',
}

/** The handler of /assets/{name}. */
export function getAsset({ baseUrl }: Pick<CreateRouteDeps, 'baseUrl'>) {
  return (req: Request, res: Response): void => {
    const asset = assets.get(String(req.params['name']))
    if (asset === undefined) {
      sendNotFound(req, res, baseUrl)
      return
    }
    // In a rollout, a page of another release may request another hash: this file must not be
    // cached as immutable under that URL.
    const hasOurHash = req.url.endsWith(`?v=${asset.hash}`)
    const cacheControl = hasOurHash ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache'
    sendFile(req, res, { ...asset, read: () => asset.bytes, cacheControl })
  }
}

/** The handler of a file that is the same for every client, such as /favicon.ico. */
export function getFixed(asset: Asset) {
  const file = { ...asset, read: () => asset.bytes, cacheControl: `public, max-age=${DAY_SECONDS}` }
  return (req: Request, res: Response): void => {
    sendFile(req, res, file)
  }
}

/** A file to send. */
interface SentFile extends Pick<Asset, 'contentType' | 'hash'> {
  /** Called unless the client has the file already. */
  readonly read: () => Buffer
  readonly cacheControl: string
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends the file, or 304 if the client has it already. */
export function sendFile(req: Request, res: Response, file: SentFile): void {
  const etag = `"${file.hash}"`
  const headers = { ...file.headers, ETag: etag, 'Cache-Control': file.cacheControl }
  if (req.headers['if-none-match']?.includes(etag) === true) {
    res.writeHead(304, headers)
    res.end()
    return
  }
  const bytes = file.read()
  res.writeHead(200, {
    ...headers,
    'Content-Type': file.contentType,
    'Content-Length': bytes.length,
    'X-Content-Type-Options': 'nosniff',
  })
  res.end(bytes)
}
