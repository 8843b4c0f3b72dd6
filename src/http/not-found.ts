// The responses for links that do not redirect: 404, and 410 or 451 for blocked targets. Each is a
// page for browsers, and a problem document for programs.
import type { IncomingMessage, ServerResponse } from 'node:http'
import Negotiator from 'negotiator'
import { PROBLEM_TYPE, sendProblem } from './problem.ts'
import { blockedPage, notFoundPage } from './pages/not-found.ts'
import { sendPage } from './pages/send-page.ts'

/** Responds with 404 and the request id that `res` already has. */
export function sendNotFound(req: IncomingMessage, res: ServerResponse, baseUrl: string): void {
  if (!prefersPage(req)) {
    const detail = 'No link has this code, or nothing is at this path'
    sendProblem(res, { name: 'not-found', detail }, baseUrl)
    return
  }
  sendPage(res, { status: 404, body: notFoundPage(req), cacheControl: 'no-store' })
}

/** The status for a link whose target is blocked; 404: the response is that for unknown codes. */
export type BlockedStatus = 404 | 410 | 451

const blockedProblems = { 410: 'link-blocked', 451: 'unavailable-for-legal-reasons' } as const

/** Responds with the status for a link whose target is blocked. */
export function sendBlocked(
  req: IncomingMessage,
  res: ServerResponse,
  { baseUrl, status }: { readonly baseUrl: string; readonly status: BlockedStatus },
): void {
  if (status === 404) {
    sendNotFound(req, res, baseUrl)
    return
  }
  if (!prefersPage(req)) {
    const detail = 'The operator of this service blocks the target of this link'
    sendProblem(res, { name: blockedProblems[status], detail }, baseUrl)
    return
  }
  sendPage(res, { status, body: blockedPage(req, status), cacheControl: 'no-store' })
}

/** Whether `Accept` prefers HTML to JSON; a client without a preference gets JSON. */
function prefersPage(req: IncomingMessage): boolean {
  const offered = [PROBLEM_TYPE, 'application/json', 'text/html']
  return new Negotiator(req).mediaType(offered) === 'text/html'
}
