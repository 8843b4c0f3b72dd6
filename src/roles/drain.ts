// The sidecar of Envoy, which does not drain by itself: on SIGTERM this role drains Envoy and exits
// once no connection is left. It has nothing to do with links and limits.
import { createDrainApp } from '../http/drain/app.ts'
import { drainEnvoy } from '../drain/drain-envoy.ts'
import { endLeftover } from '../drain/stop-leftover.ts'
import { createEnvoyAdmin } from '../clients/envoy-admin.ts'
import { drainSettings } from '../http/drain/settings.ts'
import { watchReach } from '../drain/watch-reach.ts'
import { listen } from '../http/serve.ts'
import { createHealth } from '../process/health.ts'
import { createLog } from '../telemetry/log.ts'
import { collectProcessMetrics, createMetrics } from '../telemetry/metrics.ts'
import { defineRole, refuseArguments } from '../process/role.ts'
import { version } from '../process/version.ts'

/** What a stop may take besides the drain of Envoy, which SIGTERM starts. */
const AFTER_DRAIN_MS = 7000

/** `drain`. */
export const role = defineRole({
  usage: 'drain',
  about:
    'Runs beside an Envoy. On SIGTERM it drains Envoy and exits once no connection is left, or\n' +
    'after DRAIN_SECONDS; stop Envoy after it has exited. No request can start a drain.',
  settings: drainSettings,
  run: async ({ config, args }) => {
    refuseArguments('drain', args)
    const log = createLog({ role: 'drain', level: config.LOG_LEVEL })
    const metrics = createMetrics()
    collectProcessMetrics(metrics)
    metrics.buildInfo.set({ version, node: process.version, role: 'drain' }, 1)
    const health = createHealth([])
    const envoy = createEnvoyAdmin(config.ENVOY_ADMIN_URL)
    // An Envoy that drains now was drained by an earlier process of this role.
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
    http.attach({ baseUrl: '', app: createDrainApp({ envoy, pods, health, metrics, log }) })
    health.markReady()
    log.info({ port: http.port }, 'ready')
    return {
      stopMsMax: config.DRAIN_SECONDS * 1000 + AFTER_DRAIN_MS,
      stop: async () => {
        health.markDraining()
        ending.abort()
        await drainEnvoy({
          envoy,
          msMax: config.DRAIN_SECONDS * 1000,
          quietMs: config.DRAIN_QUIET_SECONDS * 1000,
          nowMs: () => performance.now(),
          log,
        })
        await pods.settled
        await http.drain()
        log.info('stopped')
      },
    }
  },
})
