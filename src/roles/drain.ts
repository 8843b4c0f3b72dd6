// Runs beside Envoy, which does not drain by itself: on SIGTERM this role drains it, and exits when
// no connection is open.
import { createDrainApp } from '../http/drain/app.ts'
import { drainEnvoy } from '../drain/drain-envoy.ts'
import { stopLeftoverEnvoy } from '../drain/stop-leftover.ts'
import { createEnvoyAdmin } from '../clients/envoy-admin.ts'
import { drainSettings } from '../http/drain/settings.ts'
import { waitForServices } from '../drain/wait-for-services.ts'
import { listen } from '../http/serve.ts'
import { openProcess } from '../process/open-process.ts'
import { defineRole } from '../process/role.ts'

/** Time in milliseconds for the rest of the stop after the drain of Envoy. */
const AFTER_DRAIN_MS = 7000

/** `drain`. */
export const role = defineRole({
  name: 'drain',
  about:
    'Runs in the same pod as Envoy. On SIGTERM it drains Envoy, and exits when no connection is\n' +
    'open, or after DRAIN_SECONDS. Stop Envoy only after that. No HTTP request starts a drain.',
  settings: drainSettings,
  run: async ({ config, signal }) => {
    const { log, metrics, health } = openProcess('drain', config, [])
    const envoy = createEnvoyAdmin(config.ENVOY_ADMIN_URL)
    // If Envoy is already draining, the previous process of this role has started that drain.
    await stopLeftoverEnvoy({ envoy, nowMs: () => performance.now(), signal, log })
    const stopping = new AbortController()
    const http = await listen({
      port: config.DRAIN_PORT,
      setting: 'DRAIN_PORT',
      onError: (err) => {
        log.error({ err }, 'connection not accepted')
      },
    })
    const serviceWait = waitForServices({
      envoy,
      nowMs: () => performance.now(),
      signal: stopping.signal,
      log,
    })
    const app = createDrainApp({ envoy, serviceWait, health, metrics, log })
    http.attach({ baseUrl: '', app })
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
        await serviceWait.settled
        await http.drain()
        log.info('stopped')
      },
    }
  },
})
