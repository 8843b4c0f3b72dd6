// Unexpected errors: logged, and never revealed to the client.
import type { NextFunction, Request, Response } from 'express'
import type { Log } from '../telemetry/log.ts'
import { requestIdOf } from '../telemetry/request-id.ts'
import { sendNotFound } from './not-found.ts'
import { sendProblem } from './problem.ts'

/** The error handler of every Express app: 500, or 404 for a path with invalid percent-encoding. */
export function errorHandler(deps: { baseUrl: string; log: Log }) {
  return (error: unknown, req: Request, res: Response, next: NextFunction): void => {
    if (error instanceof URIError && !res.headersSent) {
      sendNotFound(req, res, deps.baseUrl)
      return
    }
    deps.log.error({ err: error, requestId: requestIdOf(req) }, 'request failed')
    if (res.headersSent) {
      next(error) // the listener closes the connection: the response has started
    } else {
      const detail = 'The request failed; the error was logged with this request id'
      sendProblem(res, { name: 'internal', detail }, deps.baseUrl)
    }
  }
}
