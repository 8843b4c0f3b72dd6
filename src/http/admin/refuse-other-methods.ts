// 405 on the admin port: what a path answers to the methods that it does not serve.
import type { IRouter } from 'express'
import { sendProblem } from '../problem.ts'

/** Refuses what is left over, given what each path allows; stands behind the routes themselves. */
export function refuseOtherMethods(
  router: IRouter,
  allowed: Readonly<Record<string, string>>,
  baseUrl: string,
): void {
  for (const [path, allow] of Object.entries(allowed)) {
    router.all(path, (_req, res) => {
      const detail = `This path serves ${allow}`
      sendProblem(res, { name: 'method-not-allowed', detail, headers: { Allow: allow } }, baseUrl)
    })
  }
}
