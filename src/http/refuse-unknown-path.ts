// The end of the public apps: what no route and no lane has answered.
import type { RequestHandler } from 'express'
import { parseCodePath } from '../links/alias.ts'
import { sendNotFound } from './not-found.ts'
import { sendProblem } from './problem.ts'

/** Refuses every method of a path, or those that are left over. `allow` names the others. */
export function methodNotAllowed(deps: { baseUrl: string }, allow: string): RequestHandler {
  return (_req, res) => {
    const detail = `This path serves ${allow}`
    const headers = { Allow: allow }
    sendProblem(res, { name: 'method-not-allowed', detail, headers }, deps.baseUrl)
  }
}

/** Codes are served by the lane in front of the app; other methods on them end here. */
export function refuseUnknownPath(deps: { baseUrl: string }): RequestHandler {
  const refuse = methodNotAllowed(deps, 'GET, HEAD')
  return (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    if (!isRead && parseCodePath(req.path) !== undefined) void refuse(req, res, next)
    else sendNotFound(req, res, deps.baseUrl)
  }
}
