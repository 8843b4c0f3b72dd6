// The companion beside Envoy, which does not drain by itself: `GET /drain`, or SIGTERM, tells it
// to, and waits until it serves nobody. It knows no links and no limits.
import { createDrainApp } from '../http/drain/app.ts'
import { createDrain } from '../http/drain/drain-envoy.ts'
import { endLeftover } from '../http/drain/end-leftover.ts'
import { createEnvoyAdmin } from '../http/drain/envoy-admin.ts'
import { drainSettings } from '../http/drain/settings.ts'
import { watchReach } from '../http/drain/watch-reach.ts'
import { listen } from '../http/serve.ts'
import { createHealth } from '../process/health.ts'
import { createLog } from '../process/log.ts'
import { collectProcessMetrics, createMetrics } from '../process/metrics.ts'
import { defineRole, refuseArguments } from '../process/role.ts'
import { version } from '../process/version.ts'

/** `drain`. */
export const role = defineRole({
  usage: 'drain',
  about:
    'Stands beside an Envoy. GET /drain, its preStop hook, tells it to drain and is answered\n' +
    'once it serves nobody, or after DRAIN_SECONDS; SIGTERM begins the same and waits for its end.',
  settings: drainSettings,
  run: async ({ config, args }) => {
    refuseArguments('drain', args)
    const log = createLog({ role: 'drain', level: config.LOG_LEVEL })
    const metrics = createMetrics()
    collectProcessMetrics(metrics)
    metrics.buildInfo.set({ version, node: process.version, role: 'drain' }, 1)
    const health = createHealth([])
    const envoy = createEnvoyAdmin(config.ENVOY_ADMIN_URL)
    const drain = createDrain({
      envoy,
      msMax: config.DRAIN_SECONDS * 1000,
      quietMs: config.DRAIN_QUIET_SECONDS * 1000,
      nowMs: () => performance.now(),
      log,
    })
    // Before anybody can ask for a drain: whoever drains now was told by another companion.
    await endLeftover({ envoy, nowMs: () => performance.now(), log })
    const ending = new AbortController()
    const http = await listen({
      port: config.DRAIN_PORT,
      setting: 'DRAIN_PORT',
      onError: (err) => {
        log.error({ err }, 'a connection was not accepted')
      },
    })
    const pods = watchReach({ envoy, nowMs: () => performance.now(), signal: ending.signal, log })
    http.attach({ baseUrl: '', app: createDrainApp({ drain, envoy, pods, health, metrics, log }) })
    health.markReady()
    log.info({ port: http.port }, 'ready')
    return {
      stop: async () => {
        health.markDraining()
        ending.abort()
        await drain.untilGone()
        await pods.settled
        await http.drain()
        log.info('stopped')
      },
    }
  },
})
