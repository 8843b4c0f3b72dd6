// The sidecar's port: probes and metrics. It is open to every scraper, so that no request to it
// changes anything: a drain is started by SIGTERM alone.
import type { Express } from 'express'
import type { Health } from '../../process/health.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createAdminApp } from '../admin/app.ts'
import { bareApp } from '../bare-app.ts'
import { failedRequest } from '../failed-request.ts'
import type { EnvoyAdmin } from '../../drain/envoy.ts'
import type { Reach } from '../../drain/watch-reach.ts'

/** What the port needs. */
export interface DrainAppDeps {
  readonly envoy: Pick<EnvoyAdmin, 'askReady'>
  readonly pods: Pick<Reach, 'isOver'>
  readonly health: Pick<Health, 'read'>
  readonly metrics: Pick<Metrics, 'registry'>
  readonly log: Log
}

/** Makes the app. */
export function createDrainApp(deps: DrainAppDeps): Express {
  const { envoy, pods, metrics, log } = deps
  const baseUrl = ''
  const app = bareApp()
  app.get('/readyz', async (_req, res) => {
    const { ready, status } = deps.health.read()
    const said = await envoy.askReady()
    const found = said === 'ready' && !pods.isOver() ? 'alone' : said
    const isReady = ready && found === 'ready'
    const stated = ready && !isReady ? 'not-ready' : status
    res.status(isReady ? 200 : 503).json({ status: stated, dependencies: { envoy: found } })
  })
  app.use(createAdminApp({ health: deps.health, metrics, log, baseUrl, token: undefined }))
  app.use(failedRequest({ log, baseUrl }))
  return app
}
