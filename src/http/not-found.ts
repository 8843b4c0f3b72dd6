// The 404 response: a page for browsers, a problem document for programs.
import type { IncomingMessage, ServerResponse } from 'node:http'
import Negotiator from 'negotiator'
import { PROBLEM_TYPE, sendProblem } from './problem.ts'
import { renderNotFoundPage } from './pages/not-found.ts'
import { sendPage } from './pages/send-page.ts'

/** Responds with 404 and the request id that `res` already has. */
export function sendNotFound(req: IncomingMessage, res: ServerResponse, baseUrl: string): void {
  if (!prefersPage(req)) {
    const detail = 'No link has this code, or nothing is at this path'
    sendProblem(res, { name: 'not-found', detail }, baseUrl)
    return
  }
  sendPage(res, { status: 404, body: renderNotFoundPage(), cacheControl: 'no-store' })
}

/** Whether `Accept` prefers HTML to JSON; a client without a preference gets JSON. */
function prefersPage(req: IncomingMessage): boolean {
  const offered = [PROBLEM_TYPE, 'application/json', 'text/html']
  return new Negotiator(req).mediaType(offered) === 'text/html'
}
