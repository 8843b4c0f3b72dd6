// 405 on the admin port: the response to methods that a path does not serve.
import type { IRouter } from 'express'
import { sendProblem } from '../problem.ts'

/** Rejects the methods that a path does not allow; register it after the routes. */
export function rejectOtherMethods(
  router: IRouter,
  allowed: Readonly<Record<string, string>>,
  baseUrl: string,
): void {
  for (const [path, allow] of Object.entries(allowed)) {
    router.route(path).all((_req, res) => {
      const detail = `This path serves ${allow}`
      sendProblem(res, { name: 'method-not-allowed', detail, headers: { Allow: allow } }, baseUrl)
    })
  }
}
