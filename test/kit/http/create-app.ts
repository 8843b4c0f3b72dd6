// The create app on a port of this process, without a store: the test chooses the outcome of each
// create and verifies the HTTP response.
import { type ClientKeys, noClientKeys } from '../../../src/create/client-keys.ts'
import { createCreateApp } from '../../../src/http/create/app.ts'
import { createBodySchema } from '../../../src/http/create/create-request.ts'
import { noLimits, type RequestLimits } from '../../../src/http/limit-requests.ts'
import type { ReportStore } from '../../../src/links/report-store.ts'
import type { Clock } from '../../../src/resilience/deadline.ts'
import { listen } from '../../../src/http/serve.ts'
import { createMemoryReportStore } from '../stores/memory-report-store.ts'
import { warn } from '../warn.ts'
import { createLog } from '../../../src/telemetry/log.ts'
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts'
import type { CreateOutcome, CreateRequest } from '../../../src/create/create-link.ts'

/** A running app. */
export interface RunningCreateApp {
  /** The URL that it listens on; its BASE_URL is by default https://curtail.example. */
  readonly url: string
  readonly metrics: Metrics
  /** The create requests so far. */
  readonly requests: readonly CreateRequest[]
  stop(): Promise<void>
}

/** The base URL of its short links. */
export const BASE_URL = 'https://curtail.example'

/** The only target that it blocks. */
export const BLOCKED_TARGET = 'https://blocked.example/'

/** How to start it. */
interface StartOptions {
  readonly keys?: ClientKeys
  readonly limits?: RequestLimits
  readonly reports?: ReportStore
  readonly securityContacts?: readonly string[]
  readonly baseUrl?: string
  readonly nowMs?: Clock
}

/** Starts the app; `outcome` returns the outcome of a valid request. */
export async function startCreateApp(
  outcome: (request: CreateRequest) => CreateOutcome,
  {
    keys = noClientKeys,
    limits = noLimits,
    reports = createMemoryReportStore(),
    securityContacts = [],
    baseUrl = BASE_URL,
    nowMs = Date.now,
  }: StartOptions = {},
): Promise<RunningCreateApp> {
  const metrics = createMetrics()
  const requests: CreateRequest[] = []
  const ownHosts = new Set(['curtail.example'])
  const deps = {
    baseUrl,
    ownHosts,
    reports,
    securityContacts,
    nowMs,
    schema: createBodySchema(ownHosts),
    create: (request: CreateRequest) => {
      requests.push(request)
      return Promise.resolve(outcome(request))
    },
    keys,
    limits,
    isBlocked: (longUrl: string) => longUrl === BLOCKED_TARGET,
    metrics,
    log: createLog({ role: 'test', level: 'silent' }),
  }
  const listener = await listen({ port: 0, host: '127.0.0.1', setting: 'PORT', onError: warn })
  listener.attach({ baseUrl, app: createCreateApp(deps) })
  return {
    url: `http://127.0.0.1:${listener.port}`,
    metrics,
    requests,
    stop: () => listener.drain(0), // does not wait for idle connections
  }
}

/** The outcome of a create that succeeds on 1 January 2027. */
export function createdAsRequested(request: CreateRequest): CreateOutcome {
  const { longUrl, alias, ttlDays, creatorId } = request
  const createdAtMs = Date.UTC(2027, 0, 1)
  const link = {
    code: alias ?? 'abc1234',
    longUrl,
    createdAtMs,
    expiresAtMs: ttlDays === undefined ? null : createdAtMs + ttlDays * 86_400_000,
    creatorId,
    writerId: 'w',
    disabledAtMs: null,
    deletedAtMs: null,
  }
  return { kind: 'created', link, replayed: false }
}
