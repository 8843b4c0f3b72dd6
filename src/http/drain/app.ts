// The companion's port: the drain, probes and metrics. It serves whoever reaches it, so that only
// the kubelet and what scrapes metrics should.
import type { Express } from 'express'
import type { Health } from '../../process/health.ts'
import type { Log } from '../../process/log.ts'
import type { Metrics } from '../../process/metrics.ts'
import { createAdminApp } from '../admin/app.ts'
import { refuseOtherMethods } from '../admin/refuse-other-methods.ts'
import { bareApp } from '../bare-app.ts'
import { failedRequest } from '../failed-request.ts'
import type { Drain, DrainOutcome } from './drain-envoy.ts'
import type { EnvoyAdmin } from './envoy-admin.ts'
import type { Reach } from './watch-reach.ts'

/** What the port needs. */
export interface DrainAppDeps {
  readonly drain: Pick<Drain, 'begin'>
  readonly envoy: Pick<EnvoyAdmin, 'askReady'>
  readonly pods: Pick<Reach, 'isOver'>
  readonly health: Pick<Health, 'read'>
  readonly metrics: Pick<Metrics, 'registry'>
  readonly log: Log
}

/** A kubelet tells of a hook that is not answered with 2xx. */
const statusOf: Readonly<Record<DrainOutcome, 200 | 503>> = {
  drained: 200,
  idle: 200,
  gone: 200,
  busy: 503,
  unknown: 503,
}

/** Makes the app. */
export function createDrainApp(deps: DrainAppDeps): Express {
  const { drain, envoy, pods, metrics, log } = deps
  const baseUrl = ''
  const app = bareApp()
  app.get('/drain', async (req, res, next) => {
    if (req.method === 'HEAD') {
      next() // no probe begins a drain
      return
    }
    const { outcome, served, tookMs } = await drain.begin()
    res.status(statusOf[outcome]).json({ outcome, ...served, took_ms: tookMs })
  })
  refuseOtherMethods(app, { '/drain': 'GET' }, baseUrl)
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
