// The error handler of every Express app: nothing of the error itself reaches the client.
import type { NextFunction, Request, Response } from 'express'
import type { Log } from '../process/log.ts'
import { sendNotFound } from './not-found.ts'
import { sendProblem } from './problem.ts'

/** Answers 500 and logs the error; an escape in the path that does not decode is 404. */
export function failedRequest(deps: { baseUrl: string; log: Log }) {
  return (error: unknown, req: Request, res: Response, next: NextFunction): void => {
    if (res.headersSent) {
      next(error) // Express closes the connection: the answer cannot be mended
    } else if (error instanceof URIError) {
      sendNotFound(req, res, deps.baseUrl)
    } else {
      const requestId = res.getHeader('X-Request-Id')
      deps.log.error({ err: error, requestId }, 'a request failed')
      const detail = 'The request failed; it was logged under this request id'
      sendProblem(res, { name: 'internal', detail }, deps.baseUrl)
    }
  }
}
