// The port of the role `drain`: probes and metrics. It is open to every scraper, so no request
// changes any state: only SIGTERM starts a drain.
import type { Express } from 'express'
import type { Health } from '../../process/health.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createAdminApp } from '../admin/app.ts'
import { bareApp } from '../bare-app.ts'
import { errorHandler } from '../error-handler.ts'
import type { EnvoyAdmin } from '../../drain/envoy.ts'
import type { ServiceWait } from '../../drain/wait-for-services.ts'

/** Dependencies of the port. */
export interface DrainAppDeps {
  readonly envoy: Pick<EnvoyAdmin, 'readReadiness'>
  /** The wait for the services behind Envoy. */
  readonly serviceWait: Pick<ServiceWait, 'isComplete'>
  readonly health: Pick<Health, 'read'>
  readonly metrics: Pick<Metrics, 'registry'>
  readonly log: Log
}

/** Creates the app. */
export function createDrainApp(deps: DrainAppDeps): Express {
  const { envoy, serviceWait, metrics, log } = deps
  const baseUrl = ''
  const app = bareApp()
  app.get('/readyz', async (_req, res) => {
    const { ready, status } = deps.health.read()
    const readiness = await envoy.readReadiness()
    const hasUpstream = serviceWait.isComplete()
    const envoyState = readiness === 'ready' && !hasUpstream ? 'no-upstream' : readiness
    const isReady = ready && envoyState === 'ready'
    const reported = ready && !isReady ? 'not-ready' : status
    res.status(isReady ? 200 : 503).json({ status: reported, dependencies: { envoy: envoyState } })
  })
  app.use(createAdminApp({ health: deps.health, metrics, log, baseUrl, token: undefined }))
  app.use(errorHandler({ log, baseUrl }))
  return app
}
