// The admin API of the rate-limit service: resets counters.
import { type Request, type Response, Router } from 'express'
import type { ResetLimits } from '../../limiter/decide/reset-limits.ts'
import { invalidRequest } from '../field-faults.ts'
import { rejectOtherMethods } from '../method-not-allowed.ts'
import { sendProblem } from '../problem.ts'
import { resultOrFailed } from '../../resilience/retry-until-deadline.ts'
import { parseDescriptorQuery } from './parse-descriptor-query.ts'

const RESET = '/limits/reset'

/** The routes under `/admin`. */
export function limiterAdminRoutes(reset: ResetLimits, baseUrl: string): Router {
  const router = Router({ strict: true, caseSensitive: true })
  router.post(RESET, async (req: Request, res: Response) => {
    const request = parseDescriptorQuery(req)
    if ('fault' in request) {
      const fault = { pointer: '', code: 'invalid', detail: request.fault }
      sendProblem(res, invalidRequest([fault]), baseUrl)
      return
    }
    const rules = await resultOrFailed(reset(request))
    if (rules === 'failed') {
      const detail = 'Redis is unavailable: retry the request'
      sendProblem(res, { name: 'store-unavailable', detail }, baseUrl)
    } else res.set('Cache-Control', 'no-store').json({ rules })
  })
  rejectOtherMethods(router, { [RESET]: 'POST' }, baseUrl)
  return router
}
