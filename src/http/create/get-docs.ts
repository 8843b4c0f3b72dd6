// GET /openapi.json and GET /docs: one document, and the reference rendered from it. Both are
// rendered once, when the service starts.
import type { Request, Response } from 'express'
import { renderDocsPage } from '../pages/docs.ts'
import { CACHED_BRIEFLY, sendPage } from '../pages/send-page.ts'
import { createOpenApi } from './openapi.ts'
import type { CreateRouteDeps } from './post-link.ts'

/** The handler of GET /docs. */
export function getDocs(deps: CreateRouteDeps) {
  const body = renderDocsPage(createOpenApi(deps))
  return (_req: Request, res: Response): void => {
    sendPage(res, { status: 200, body, cacheControl: CACHED_BRIEFLY })
  }
}

/** The handler of GET /openapi.json. */
export function getOpenApi(deps: CreateRouteDeps) {
  const body = Buffer.from(JSON.stringify(createOpenApi(deps)))
  return (_req: Request, res: Response): void => {
    res.writeHead(200, {
      'Content-Type': 'application/json; charset=utf-8',
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': CACHED_BRIEFLY,
      'Content-Length': body.length,
    })
    res.end(body)
  }
}
