// The last handler of the public apps: requests that no route and no fast path has handled.
import type { RequestHandler } from 'express'
import { parseCodePath } from '../links/alias.ts'
import { sendNotFound } from './not-found.ts'
import { sendProblem } from './problem.ts'

/** Rejects every method that reaches it; `allow` lists the methods that the path serves. */
export function methodNotAllowed(deps: { baseUrl: string }, allow: string): RequestHandler {
  return (_req, res) => {
    const detail = `This path serves ${allow}`
    const headers = { Allow: allow }
    sendProblem(res, { name: 'method-not-allowed', detail, headers }, deps.baseUrl)
  }
}

/** Codes are served by the fast path before the app; their other methods get 405 here. */
export function rejectUnknownPath(deps: { baseUrl: string }): RequestHandler {
  const reject = methodNotAllowed(deps, 'GET, HEAD')
  return (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    if (!isRead && parseCodePath(req.path) !== undefined) void reject(req, res, next)
    else sendNotFound(req, res, deps.baseUrl)
  }
}
