// The port on which the leader sends the rules to limiters. While it cannot be opened, the leader
// works without limiters and retries. This module does not implement xDS.
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type BackOffBounds, createBackOff } from '../back-off.ts'
import { completesWithin, pauseFor, type Scheduler } from '../scheduler.ts'
import type { RuleHits } from './audit-sums.ts'
import type { ConnectedLimiter } from './report-policies.ts'

/** A compiled version. */
export interface CompiledVersion {
  /** Equal versions have equal resources. */
  readonly version: string
  /** Serialized RateLimitConfigs. */
  readonly resources: readonly Uint8Array[]
}

/** The xDS server that sends the rules to limiters. */
export interface RulesServer {
  readonly port: number
  publish(rules: CompiledVersion): void
  /** The connected limiters. */
  replicas(): readonly ConnectedLimiter[]
  close(): Promise<void>
}

/** Callbacks for events of limiters. */
export interface LimiterEvents {
  /** Called when the state of a limiter changes. */
  readonly onChange: () => void
  /** Called with the active version of a limiter that stops, before `replicas` omits it. */
  readonly onLeave: (active: string) => void
  /** Called with each report of a limiter. */
  readonly onAudit: (counts: readonly RuleHits[]) => void
}

/** Dependencies of the port. */
export interface RulesPortDeps {
  /** Opens the port for limiters. */
  readonly openServer: (on: LimiterEvents) => Promise<RulesServer>
  /** Called when the port has been opened, and when an attempt to open it has failed. */
  readonly onPort: (state: 'up' | 'down') => void
  readonly scheduler: Scheduler
  readonly random: () => number
  readonly metrics: Pick<Metrics, 'backgroundFailures'>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** The port of a leader. */
export interface RulesPort {
  /** Sends a version to every limiter, including those that connect later. */
  readonly publish: (rules: CompiledVersion) => void
  /** The connected limiters. */
  readonly replicas: () => readonly ConnectedLimiter[]
  /** Closes the port and its connections; resolves within CLOSE_MS_MAX. */
  readonly close: () => Promise<void>
}

const RETRY_BACK_OFF: BackOffBounds = { initialMs: 1000, maxMs: 30_000, resetAfterMs: 60_000 }
/** The server closes its connections within 1 s. */
const CLOSE_MS_MAX = 1500

/** Starts to open the port. */
export function openRulesPort(deps: RulesPortDeps, on: LimiterEvents): RulesPort {
  const { scheduler, log } = deps
  const backOff = createBackOff(RETRY_BACK_OFF, deps)
  const closing = new AbortController()
  let server: RulesServer | undefined
  let newest: CompiledVersion | undefined
  let hasFailed = false
  const recordFailure = (err: unknown) => {
    deps.metrics.backgroundFailures.inc({ task: 'open-ads-port' })
    deps.onPort('down')
    if (!hasFailed) log.error({ err }, 'the port for limiters cannot be opened: retrying')
    hasFailed = true
  }
  const keepOpening = async () => {
    while (server === undefined && !closing.signal.aborted) {
      try {
        server = await deps.openServer(on)
      } catch (err) {
        recordFailure(err)
        await pauseFor(scheduler, backOff.nextMs(), closing.signal)
      }
    }
    if (server === undefined || closing.signal.aborted) return
    if (newest !== undefined) server.publish(newest)
    deps.onPort('up')
    log.info({ adsPort: server.port }, 'serving the rules of RateLimitPolicies')
  }
  const opening = keepOpening()
  return {
    publish(rules) {
      newest = rules
      server?.publish(rules)
    },
    replicas: () => server?.replicas() ?? [],
    async close() {
      closing.abort()
      const closed = opening.then(() => server?.close())
      if (!(await completesWithin(scheduler, CLOSE_MS_MAX, closed)))
        log.warn('the port for limiters was not closed within the deadline')
    },
  }
}
