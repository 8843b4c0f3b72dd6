// The HTTP listeners of the rate-limit service: /json, the debug port, the admin port, and the
// metrics on envoyproxy/ratelimit's port.
import type { Express, Router } from 'express'
import type { Health } from '../../process/health.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createAdminApp } from '../admin/app.ts'
import { bareApp } from '../bare-app.ts'
import { errorHandler } from '../error-handler.ts'
import { sendMetrics } from '../send-metrics.ts'
import { listen } from '../serve.ts'
import { createRateLimitApp, type RateLimitAppDeps } from './app.ts'
import { createDebugApp, type DebugAppDeps } from './debug-app.ts'

/** Dependencies of the listeners. */
export interface RateLimitListenersDeps extends RateLimitAppDeps, DebugAppDeps {
  readonly health: Health
  readonly metrics: Metrics
  /** The routes of the admin API, which require ADMIN_TOKEN. */
  readonly adminApi: Router
  readonly config: {
    readonly ADMIN_TOKEN: string | undefined
    readonly HOST: string
    readonly PORT: number
    readonly DEBUG_HOST: string
    readonly DEBUG_PORT: number
    readonly ADMIN_PORT: number
    readonly USE_PROMETHEUS: boolean
    readonly PROMETHEUS_ADDR: { readonly host: string | undefined; readonly port: number }
    readonly PROMETHEUS_PATH: string
  }
  /** Called before a listener opens, with the function that drains those that have opened. */
  readonly onStop: (drain: () => Promise<void>) => void
}

/** How long the listeners, which drain in parallel, wait for requests in flight. */
const DRAIN_MS_MAX = 1000

/** Opens all listeners and returns their ports. Throws OperatorError. */
export async function openRateLimitListeners(deps: RateLimitListenersDeps) {
  const { config, baseUrl, onStop } = deps
  const onError = (err: unknown) => {
    deps.log.error({ err }, 'connection not accepted')
  }
  const drains: (() => Promise<void>)[] = []
  onStop(async () => {
    await Promise.all(drains.map((drain) => drain()))
  })
  const open = async (at: { host?: string; port: number; setting: string }, app: Express) => {
    const http = await listen({ ...at, drainMsMax: DRAIN_MS_MAX, onError })
    http.attach({ baseUrl, app })
    drains.push(() => http.drain())
    return http.port
  }
  const json = { host: config.HOST, port: config.PORT, setting: 'PORT' }
  const debug = { host: config.DEBUG_HOST, port: config.DEBUG_PORT, setting: 'DEBUG_PORT' }
  const admin = { port: config.ADMIN_PORT, setting: 'ADMIN_PORT' }
  const ports = {
    port: await open(json, createRateLimitApp(deps)),
    debugPort: await open(debug, createDebugApp(deps)),
    adminPort: await open(admin, adminApp(deps)),
  }
  if (!config.USE_PROMETHEUS || isOnAdminPort(config)) return ports
  const { host, port } = config.PROMETHEUS_ADDR
  const at = { ...(host !== undefined && { host }), port, setting: 'PROMETHEUS_ADDR' }
  return { ...ports, prometheusPort: await open(at, metricsApp(deps)) }
}

/** Without a token, the admin API is disabled. */
function adminApp(deps: RateLimitListenersDeps): Express {
  const { ADMIN_TOKEN: token } = deps.config
  return createAdminApp({ ...deps, token, ...(token !== undefined && { api: deps.adminApi }) })
}

/** Whether the admin port already serves the metrics at this path. */
function isOnAdminPort(config: RateLimitListenersDeps['config']): boolean {
  const { PROMETHEUS_ADDR, PROMETHEUS_PATH, ADMIN_PORT } = config
  return PROMETHEUS_ADDR.port === ADMIN_PORT && PROMETHEUS_PATH === '/metrics'
}

function metricsApp(deps: RateLimitListenersDeps): Express {
  const app = bareApp()
  app.get(deps.config.PROMETHEUS_PATH, sendMetrics(deps.metrics.registry))
  app.use(errorHandler(deps))
  return app
}
