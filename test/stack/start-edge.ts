// The edge of the stack: an Envoy with the product's own bootstrap, and the sidecar that drains it.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { SplitRule } from '../../envoy/allowance.ts'
import type { Endpoint } from '../../envoy/edge-settings.ts'
import { renderBootstrap } from '../../envoy/render-bootstrap.ts'
import { type RoleProcess, startRole } from '../kit/processes/role-process.ts'
import { findEnvoy, type RunningEnvoy, startEnvoy } from '../dependencies/envoy.ts'
import { logFileOf, logToFile } from './log-files.ts'
import { DIE_WITH_PARENT, startComponent, type Component } from './component.ts'

/** An Envoy and its sidecar. */
export interface Edge {
  /** The URL for clients. */
  readonly url: string
  readonly port: number
  readonly metricsUrl: string
  /** Its access log. */
  readonly accessLogPath: string
  readonly envoy: Component & { now(): RunningEnvoy }
  readonly sidecar: Component & { now(): RoleProcess }
  /** Drains it like the kubelet, by SIGTERM to its sidecar; resolves to the sidecar's log entry. */
  drain(): Promise<Record<string, unknown>>
}

/** How to start an edge. */
export interface EdgeOptions {
  /** The number at the end of its components' names. */
  readonly ordinal: number
  readonly folder: string
  readonly baseUrl: string
  readonly trustedHops: number
  /** The settings of the allowance; absent: Envoy calls the limiter for every redirect. */
  readonly allowance?: SplitRule['edge']
  /** Whether Envoy limits nothing and never calls the limiter. @default false */
  readonly isUnlimited?: boolean
  /** Worker threads of Envoy. @default 1 */
  readonly workers?: number
  /** gRPC port that receives the spans of every request; absent: tracing is off. */
  readonly tracingPort?: number
  /** Its ports: HTTP, metrics, admin, and the sidecar's. */
  readonly ports: {
    readonly http: number
    readonly metrics: number
    readonly admin: number
    readonly drain: number
  }
  readonly redirectEndpoints: readonly Endpoint[]
  readonly createEndpoints: readonly Endpoint[]
  readonly limiterEndpoints: readonly Endpoint[]
}

/** Short bounds of a drain: on one machine all clients switch to the new edge immediately. */
const DRAIN_SECONDS = 15
const DRAIN_QUIET_SECONDS = 1

/** Starts both; resolves when both are ready. */
export async function startEdge(options: EdgeOptions): Promise<Edge> {
  const { ordinal, folder, ports } = options
  const url = urlOf(ports.http)
  const envoyName = `envoy-${String(ordinal)}`
  const configPath = join(folder, `${envoyName}.yaml`)
  const accessLogPath = logFileOf(folder, `${envoyName}-access`)
  const bootstrap = bootstrapOf(options, accessLogPath)
  await writeFile(configPath, options.isUnlimited === true ? withoutLimits(bootstrap) : bootstrap)
  const envoy = await startComponent({
    name: envoyName,
    addresses: `${url}, metrics ${urlOf(ports.metrics)}, admin ${urlOf(ports.admin)}`,
    start: async () =>
      startEnvoy({
        path: await findEnvoy(),
        configPath,
        workers: options.workers ?? 1,
        args: ['--drain-time-s', '60', '--file-flush-interval-msec', '500'],
        wrapper: DIE_WITH_PARENT,
        onSpawn: logToFile(folder, envoyName),
      }),
  })
  const drainName = `drain-${String(ordinal)}`
  const sidecar = await startComponent({
    name: drainName,
    addresses: urlOf(ports.drain),
    start: () =>
      startRole({
        role: 'drain',
        wrapper: DIE_WITH_PARENT,
        onSpawn: logToFile(folder, drainName),
        env: {
          ENVOY_ADMIN_URL: urlOf(ports.admin),
          DRAIN_PORT: String(ports.drain),
          DRAIN_SECONDS: String(DRAIN_SECONDS),
          DRAIN_QUIET_SECONDS: String(DRAIN_QUIET_SECONDS),
        },
      }),
  }).catch(async (error: unknown) => {
    await envoy.stop()
    throw error
  })
  return {
    url,
    port: ports.http,
    metricsUrl: urlOf(ports.metrics),
    accessLogPath,
    envoy,
    sidecar,
    async drain() {
      await sidecar.stop()
      return drainEntryOf(sidecar.now().log)
    },
  }
}

/** The log entry in which the sidecar reports the drain. Throws if it is missing. */
function drainEntryOf(log: RoleProcess['log']): Record<string, unknown> {
  const entry = log.find(({ msg }) => msg === 'drain of Envoy completed')
  if (entry === undefined) throw new Error('the sidecar did not report a drain of Envoy')
  return entry
}

function bootstrapOf(options: EdgeOptions, accessLogPath: string): string {
  const { baseUrl, trustedHops, ports } = options
  const { redirectEndpoints, createEndpoints, limiterEndpoints } = options
  const bootstrap = renderBootstrap({
    baseUrl,
    trustedHops,
    listenAddress: '127.0.0.1',
    httpPort: ports.http,
    metricsPort: ports.metrics,
    adminPort: ports.admin,
    accessLogPath,
    redirectEndpoints,
    createEndpoints,
    limiterEndpoints,
    ...options.allowance,
    ...(options.tracingPort !== undefined && {
      tracingHost: '127.0.0.1',
      tracingPort: options.tracingPort,
      tracingSamplePercent: 100,
    }),
  })
  return options.tracingPort === undefined ? bootstrap : withFastExport(bootstrap)
}

/** The bootstrap of an Envoy that exports spans every 500 ms instead of every 5 s. */
function withFastExport(bootstrap: string): string {
  const layer = /^( +)static_layer:\n/m
  if (!layer.test(bootstrap)) throw new Error('the bootstrap has no static layer')
  return bootstrap.replace(layer, '$&$1  tracing.opentelemetry.flush_interval_ms: 500\n')
}

const limitFilters = /ratelimit|local_fallback|allowance|select_route/

/** The bootstrap without the filters of rate limits, and without their settings in routes. */
function withoutLimits(bootstrap: string): string {
  const isKept = (one: unknown) => !limitFilters.test((one as { name?: string }).name ?? '')
  return JSON.stringify(parse(bootstrap, { intAsBigInt: true }), (key, value: unknown) => {
    if (key === 'typed_per_filter_config') return undefined
    if (typeof value === 'bigint') {
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
    }
    return key === 'http_filters' ? (value as unknown[]).filter(isKept) : value
  })
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${String(port)}`
}
