// What becomes of an error that nobody expected: nothing of it reaches the client.
import type { ServerResponse } from 'node:http'
import type { NextFunction, Request, Response } from 'express'
import type { Log } from '../telemetry/log.ts'
import { sendNotFound } from './not-found.ts'
import { sendProblem } from './problem.ts'

/** The error handler of every Express app: 500, or 404 for an escape that does not decode. */
export function failedRequest(deps: { baseUrl: string; log: Log }) {
  return (error: unknown, req: Request, res: Response, next: NextFunction): void => {
    if (res.headersSent) {
      next(error) // Express closes the connection: the answer cannot be mended
    } else if (error instanceof URIError) {
      sendNotFound(req, res, deps.baseUrl)
    } else {
      sendFailure(deps, res, error)
    }
  }
}

/** Answers 500, under the request id that `res` bears already, and logs the error. */
export function sendFailure(
  deps: { baseUrl: string; log: Log },
  res: ServerResponse,
  error: unknown,
): void {
  const requestId = res.getHeader('X-Request-Id')
  deps.log.error({ err: error, requestId }, 'a request failed')
  if (res.headersSent) {
    res.destroy() // the answer cannot be mended
  } else {
    const detail = 'The request failed; it was logged under this request id'
    sendProblem(res, { name: 'internal', detail }, deps.baseUrl)
  }
}
