// The one answer for what is not there: a page for people, a problem document for programs.
import type { IncomingMessage, ServerResponse } from 'node:http'
import Negotiator from 'negotiator'
import { pageHeaders } from './page-headers.ts'
import { PROBLEM_TYPE, sendProblem } from './problem.ts'
import { renderNotFoundPage } from './pages/not-found.ts'

/** Answers 404, under the request id that `res` bears already. */
export function sendNotFound(req: IncomingMessage, res: ServerResponse, baseUrl: string): void {
  if (!prefersPage(req)) {
    const detail = 'There is no link of this code, or nothing at this path'
    sendProblem(res, { name: 'not-found', detail }, baseUrl)
    return
  }
  const page = renderNotFoundPage()
  res.writeHead(404, {
    ...pageHeaders,
    'Cache-Control': 'no-store',
    'Content-Length': Buffer.byteLength(page),
  })
  res.end(page)
}

/** Whether `Accept` puts HTML before JSON; a client that does not say gets JSON. */
function prefersPage(req: IncomingMessage): boolean {
  const offered = [PROBLEM_TYPE, 'application/json', 'text/html']
  return new Negotiator(req).mediaType(offered) === 'text/html'
}
