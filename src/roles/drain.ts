// The sidecar of Envoy, which does not drain by itself: on SIGTERM this role drains Envoy and exits
// when no connection is open. Independent of links and limits.
import { createDrainApp } from '../http/drain/app.ts'
import { drainEnvoy } from '../drain/drain-envoy.ts'
import { stopLeftoverEnvoy } from '../drain/stop-leftover.ts'
import { createEnvoyAdmin } from '../clients/envoy-admin.ts'
import { drainSettings } from '../http/drain/settings.ts'
import { waitForServices } from '../drain/wait-for-services.ts'
import { listen } from '../http/serve.ts'
import { createHealth } from '../process/health.ts'
import { createLog } from '../telemetry/log.ts'
import { collectProcessMetrics, createMetrics } from '../telemetry/metrics.ts'
import { defineRole, rejectArguments } from '../process/role.ts'
import { version } from '../process/version.ts'

/** Time for the rest of the stop after Envoy's drain. */
const AFTER_DRAIN_MS = 7000

/** `drain`. */
export const role = defineRole({
  usage: 'drain',
  about:
    'Runs in the pod of an Envoy. On SIGTERM it drains Envoy and exits once no connection is\n' +
    'open, or after DRAIN_SECONDS; stop Envoy after it has exited. No request can start a drain.',
  settings: drainSettings,
  run: async ({ config, args }) => {
    rejectArguments('drain', args)
    const log = createLog({ role: 'drain', level: config.LOG_LEVEL })
    const metrics = createMetrics()
    collectProcessMetrics(metrics)
    metrics.buildInfo.set({ version, node: process.version, role: 'drain' }, 1)
    const health = createHealth([])
    const envoy = createEnvoyAdmin(config.ENVOY_ADMIN_URL)
    // An Envoy that already drains was drained by a previous process of this role.
    await stopLeftoverEnvoy({ envoy, nowMs: () => performance.now(), log })
    const stopping = new AbortController()
    const http = await listen({
      port: config.DRAIN_PORT,
      setting: 'DRAIN_PORT',
      onError: (err) => {
        log.error({ err }, 'connection not accepted')
      },
    })
    const pods = waitForServices({
      envoy,
      nowMs: () => performance.now(),
      signal: stopping.signal,
      log,
    })
    http.attach({ baseUrl: '', app: createDrainApp({ envoy, pods, health, metrics, log }) })
    health.markReady()
    log.info({ port: http.port }, 'ready')
    return {
      stopMsMax: config.DRAIN_SECONDS * 1000 + AFTER_DRAIN_MS,
      stop: async () => {
        health.markDraining()
        stopping.abort()
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
