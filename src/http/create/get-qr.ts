// GET /{code}.svg: the QR code of a short link. It depends only on the code and BASE_URL, so no
// store is read: a code without a link also has an image.
import { createHash } from 'node:crypto'
import type { Request, Response } from 'express'
import { aliasFault } from '../../links/alias.ts'
import { version } from '../../process/version.ts'
import { setLimitHeaders } from '../limit-requests.ts'
import { sendNotFound } from '../not-found.ts'
import { renderQrSvg } from '../pages/qr-svg.ts'
import { sendProblem } from '../problem.ts'
import { sendFile } from './get-asset.ts'
import type { CreateRouteDeps } from './post-link.ts'

const WEEK_SECONDS = 604_800

/** The image of one code never changes, but an operator may change BASE_URL. */
const cacheControl = `public, max-age=${WEEK_SECONDS}`

/** An SVG image is a document of its own: it needs no other resource and runs no script. */
const headers = { 'Content-Security-Policy': "default-src 'none'; sandbox" }

/** The handler of the route. Without an edge, an image counts as a lookup. */
export function getQr({ baseUrl, limits }: Pick<CreateRouteDeps, 'baseUrl' | 'limits'>) {
  const hash = createHash('sha256').update(`${version} ${baseUrl}`).digest('base64url').slice(0, 16)
  return (req: Request, res: Response): void => {
    const code = String(req.params['code'])
    if (aliasFault(code) !== undefined) {
      sendNotFound(req, res, baseUrl)
      return
    }
    const limited = limits.onLookup(req, Date.now())
    setLimitHeaders(res, limited)
    if (limited.problem !== undefined) {
      sendProblem(res, limited.problem, baseUrl)
      return
    }
    sendFile(req, res, {
      read: () => Buffer.from(renderQrSvg(`${baseUrl}/${code}`)),
      contentType: 'image/svg+xml',
      hash,
      cacheControl,
      headers,
    })
  }
}
