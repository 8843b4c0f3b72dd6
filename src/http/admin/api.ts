// The admin API: links, reports of abuse and pools, for operators. Every change is idempotent.
import { type Request, type Response, Router } from 'express'
import { isCode } from '../../links/alias.ts'
import type { ScannedStore } from '../../links/link-store.ts'
import type { ReportStore } from '../../links/report-store.ts'
import type { LinkResult, LinkOperations } from '../../admin/set-link-state.ts'
import type { PoolStatus } from '../../pools/pool-reporter.ts'
import { resultOrFailed } from '../../resilience/retry-until-deadline.ts'
import { rejectOtherMethods } from '../method-not-allowed.ts'
import { sendProblem } from '../problem.ts'
import { recordAction, recordFailures } from './audit.ts'
import { importLinks, type ImportRouteDeps } from './import-links.ts'
import { listLinks } from './list-links.ts'
import { actionRoutes, type ActionDeps } from './post-action.ts'
import { renderLink, type RenderDeps } from './render-link.ts'
import { listReports, showReport } from './reports.ts'

/** Dependencies of the admin API. */
export interface AdminApiDeps extends RenderDeps {
  readonly operations: LinkOperations
  readonly links: ScannedStore
  readonly reports: Pick<ReportStore, 'find' | 'list'>
  /** Reads the status of the pools. Throws StoreError. */
  readonly readPools: () => Promise<readonly PoolStatus[]>
  readonly imports: ImportRouteDeps
  readonly log: ActionDeps['log']
  readonly lists: NonNullable<ActionDeps['lists']>
}

const unavailable = {
  'store-unavailable': 'The store has not confirmed the request: retry it',
  'cache-unavailable': 'The store has confirmed the change, but the link cache has not: retry it',
} as const

/** The routes under `/admin`. */
export function adminRoutes(deps: AdminApiDeps, baseUrl: string): Router {
  const { operations, log, lists } = deps
  const router = Router({ strict: true, caseSensitive: true })
  const respond = (res: Response, result: LinkResult, erased = false) => {
    recordAction(res, { outcome: result.kind === 'link' ? 'success' : result.kind })
    if (result.kind === 'not-found') {
      sendProblem(res, { name: 'not-found', detail: 'No record has this code' }, baseUrl)
    } else if (result.kind !== 'link') {
      sendProblem(res, { name: 'store-unavailable', detail: unavailable[result.kind] }, baseUrl)
    } else if (erased) {
      res.status(204).end()
    } else {
      res.set('Cache-Control', 'no-store').json(renderLink(result.link, deps))
    }
  }
  const onLink = (operate: (code: string) => Promise<LinkResult>, erased = false) =>
    recordFailures(async (req: Request<{ code: string }>, res: Response) => {
      const { code } = req.params
      respond(res, isCode(code) ? await operate(code) : { kind: 'not-found' }, erased)
    })
  router.use(actionRoutes({ log, baseUrl, lists }))
  router.get('/links', listLinks(deps, baseUrl))
  router.post('/links/import', importLinks(deps.imports, baseUrl))
  router.get('/links/:code', onLink(operations.show))
  router.post('/links/:code/disable', onLink(operations.disable))
  router.post('/links/:code/enable', onLink(operations.enable))
  router.delete('/links/:code', onLink(operations.erase, true))
  router.get('/reports', listReports(deps.reports, baseUrl))
  router.get('/reports/:id', showReport(deps.reports, baseUrl))
  router.get('/pools', async (_req, res) => {
    const pools = await resultOrFailed(deps.readPools())
    if (pools === 'failed') respond(res, { kind: 'store-unavailable' })
    else res.set('Cache-Control', 'no-store').json(pools.map(renderPool))
  })
  rejectOtherMethods(router, allowedMethods, baseUrl)
  return router
}

const allowedMethods = {
  '/links': 'GET, HEAD',
  '/links/import': 'GET, HEAD, POST, DELETE',
  '/links/:code': 'GET, HEAD, DELETE',
  '/links/:code/disable': 'POST',
  '/links/:code/enable': 'POST',
  '/reports': 'GET, HEAD',
  '/reports/:id': 'GET, HEAD',
  '/pools': 'GET, HEAD',
} as const

/** A pool in the admin API's format: levels in codes, the rate in codes per second. */
function renderPool(status: PoolStatus) {
  return {
    pool: status.pool,
    level: status.level,
    low_water: status.lowWater,
    target: status.target,
    claim_rate: status.claimRate,
    seconds_to_empty: status.secondsToEmpty,
  }
}
