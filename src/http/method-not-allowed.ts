// 405: the response to methods that a path does not serve.
import type { IRouter, RequestHandler } from 'express'
import { sendProblem } from './problem.ts'

/** Rejects every method that reaches it; `allow` lists the methods that the path serves. */
export function methodNotAllowed(baseUrl: string, allow: string): RequestHandler {
  const detail = `This path serves ${allow}`
  return (_req, res) => {
    sendProblem(res, { name: 'method-not-allowed', detail, headers: { Allow: allow } }, baseUrl)
  }
}

/** Rejects the methods that each path does not allow; register it after the routes. */
export function rejectOtherMethods(
  router: IRouter,
  allowed: Readonly<Record<string, string>>,
  baseUrl: string,
): void {
  for (const [path, allow] of Object.entries(allowed)) {
    router.route(path).all(methodNotAllowed(baseUrl, allow))
  }
}
