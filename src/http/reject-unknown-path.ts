// The last handler of the public apps: requests that no route and no fast path has handled.
import type { RequestHandler } from 'express'
import { parseCodePath } from '../links/alias.ts'
import { methodNotAllowed } from './method-not-allowed.ts'
import { sendNotFound } from './not-found.ts'

/** Codes are served by the fast path before the app; their other methods get 405 here. */
export function rejectUnknownPath({ baseUrl }: { baseUrl: string }): RequestHandler {
  const reject = methodNotAllowed(baseUrl, 'GET, HEAD')
  return (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    if (!isRead && parseCodePath(req.path) !== undefined) void reject(req, res, next)
    else sendNotFound(req, res, baseUrl)
  }
}
