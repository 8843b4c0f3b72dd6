// The admin port: probes and metrics without authentication, the admin API for operators.
import type { Express, Router } from 'express'
import type { Health } from '../../process/health.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { bareApp } from '../bare-app.ts'
import { errorHandler } from '../error-handler.ts'
import { rejectOtherMethods } from '../method-not-allowed.ts'
import { sendProblem } from '../problem.ts'
import { sendMetrics } from '../send-metrics.ts'
import { adminAccess } from './access.ts'
import { auditActions } from './audit.ts'

/** Dependencies of the admin port; without `api` it serves only probes and metrics. */
export interface AdminAppDeps {
  readonly health: Pick<Health, 'read'>
  readonly metrics: Pick<Metrics, 'registry'>
  readonly log: Log
  readonly baseUrl: string
  readonly api?: Router
  /** Whether `api` changes links. The audit log then has each attempt, also rejected ones. */
  readonly changesLinks?: boolean
  /** The token that the API requires; without one, it admits only programs on this machine. */
  readonly token: string | undefined
}

const READ = 'GET, HEAD'
const allowedMethods = { '/livez': READ, '/readyz': READ, '/metrics': READ } as const

/** Creates the app. */
export function createAdminApp(deps: AdminAppDeps): Express {
  const { health, metrics, log, baseUrl } = deps
  const app = bareApp()
  app.get('/livez', (_req, res) => {
    res.json({ status: 'live' })
  })
  app.get('/readyz', (_req, res) => {
    const { ready, status, dependencies } = health.read()
    res.status(ready ? 200 : 503).json({ status, dependencies })
  })
  app.get('/metrics', sendMetrics(metrics.registry))
  rejectOtherMethods(app, allowedMethods, baseUrl)
  if (deps.api !== undefined) {
    if (deps.changesLinks === true) app.use('/admin', auditActions(log))
    app.use('/admin', adminAccess(deps), deps.api)
  }
  app.use((_req, res) => {
    const detail = 'The admin port serves nothing here, or the admin API is disabled'
    sendProblem(res, { name: 'not-found', detail }, baseUrl)
  })
  app.use(errorHandler(deps))
  return app
}
