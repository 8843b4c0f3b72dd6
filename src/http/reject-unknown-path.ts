// The last handler of the public apps: requests that no route and no fast path has handled.
import type { RequestHandler } from 'express'
import { parseCodePath } from '../links/alias.ts'
import { methodNotAllowed } from './method-not-allowed.ts'
import { sendNotFound } from './not-found.ts'

/**
 * Other methods than GET and HEAD on a code get 405. A GET of a code arrives here only in create
 * pods, which have no fast path.
 */
export function rejectUnknownPath({ baseUrl }: { baseUrl: string }): RequestHandler {
  const reject = methodNotAllowed(baseUrl, 'GET, HEAD')
  return (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    if (!isRead && parseCodePath(req.path) !== undefined) void reject(req, res, next)
    else sendNotFound(req, res, baseUrl)
  }
}
