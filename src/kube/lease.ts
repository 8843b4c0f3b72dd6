// Leader election with a Lease: the holder renews it; a candidate takes it after observing no
// renewal for the whole Lease duration by its own clock. The election does not fence: callers check
// `isLeading` before each write.
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { microTime } from './conditions.ts'
import { isStatus, KubeError } from './kube-error.ts'
import { pathOf } from './objects.ts'
import { createHeartbeat, type Heartbeat } from './heartbeat.ts'
import { pauseOn, type Scheduler } from './scheduler.ts'

/** Options of an election. */
export interface LeaseOptions {
  readonly api: KubeApi
  readonly namespace: string
  readonly name: string
  /** Unique per candidate. */
  readonly identity: string
  readonly scheduler: Scheduler
  readonly random: () => number
  /** Only for the timestamps in the Lease. */
  readonly wallMs: () => number
  readonly metrics: Pick<Metrics, 'isLeader'>
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly times?: LeaseTimes
}

/** client-go's durations. */
interface LeaseTimes {
  /** A Lease that was not renewed for so long may be acquired by another candidate. */
  readonly leaseMs: number
  /** A leader that could not renew for so long loses leadership. */
  readonly renewMs: number
  readonly retryMs: number
}

const TIMES: LeaseTimes = { leaseMs: 15_000, renewMs: 10_000, retryMs: 2000 }
const JITTER = 1.2
const RELEASE_MS_MAX = 1000
const RELEASE_ATTEMPTS_MAX = 2
/** An iteration is a pause and at most two calls: after so long it hangs. */
const ITERATION_MS_MAX = 60_000
const LEASES = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' } as const

interface LeaseSpec {
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  readonly acquireTime?: string
  readonly renewTime?: string
  readonly leaseTransitions?: number
}

interface Lease {
  readonly metadata: { readonly resourceVersion?: string }
  readonly spec?: LeaseSpec
}

/** The election of one candidate. */
export interface Election {
  /** Resolves with `true` once leading, or with `false` after `signal` aborts. */
  readonly acquire: (signal: AbortSignal) => Promise<boolean>
  /** Renews the Lease; resolves once leadership is lost or `signal` aborts. */
  readonly renew: (signal: AbortSignal) => Promise<'lost' | 'stopped'>
  /** Whether no other candidate can lead now. */
  readonly isLeading: () => boolean
  /** Whether `acquire` or `renew` hangs because of a defect: every call has a deadline. */
  readonly isStuck: () => boolean
  /** Releases the Lease, so that others need not wait; if that fails, it expires. */
  readonly release: () => Promise<void>
}

/** Creates an election; it is not started. */
export function createElection(options: LeaseOptions): Election {
  const { scheduler, random, metrics, log, identity, times = TIMES } = options
  const lock = createLeaseLock(options, times)
  const name = options.name
  /** When the last successful renewal was started. */
  let renewedMs = -Infinity
  const isLeading = () => scheduler.nowMs() - renewedMs < times.renewMs
  const attempt = async (signal: AbortSignal, msMax: number) => {
    const startedMs = scheduler.nowMs()
    try {
      const outcome = await lock.acquireOrRenew(signal, msMax)
      if (outcome === 'held') renewedMs = startedMs
      return outcome
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (!signal.aborted) log.warn({ err: error, lease: name }, 'failed to acquire the Lease')
      return 'failed'
    }
  }
  const retryMs = () => times.retryMs * (1 + random() * (JITTER - 1))
  const stepDown = () => {
    renewedMs = -Infinity
    metrics.isLeader.set({ name }, 0)
  }
  stepDown()
  const isStopping = (signal: AbortSignal) => signal.aborted
  const heartbeat = createHeartbeat(scheduler, ITERATION_MS_MAX)
  return {
    isLeading,
    isStuck: heartbeat.isStale,
    async acquire(signal) {
      while (updateHeartbeat(heartbeat, signal)) {
        if ((await attempt(signal, times.renewMs)) === 'held' && isLeading()) {
          metrics.isLeader.set({ name }, 1)
          log.info({ lease: name, identity }, 'leading')
          return true
        }
        await pauseOn(scheduler, retryMs(), signal)
      }
      return false
    },
    async renew(signal) {
      while (updateHeartbeat(heartbeat, signal)) {
        await pauseOn(scheduler, times.retryMs, signal)
        if (isStopping(signal)) return 'stopped'
        const leftMs = times.renewMs - (scheduler.nowMs() - renewedMs)
        const outcome = leftMs > 0 ? await attempt(signal, leftMs) : 'failed'
        if (outcome === 'held' || (outcome !== 'other' && isLeading())) continue
        if (isStopping(signal)) return 'stopped'
        stepDown()
        heartbeat.stop()
        log.warn({ lease: name, identity }, 'lost leadership')
        return 'lost'
      }
      return 'stopped'
    },
    async release() {
      const wasLeading = isLeading()
      stepDown()
      if (!wasLeading) return
      try {
        await lock.release()
      } catch (error) {
        if (!(error instanceof KubeError)) throw error
        log.warn({ err: error, lease: name }, 'Lease not released: it expires')
      }
    },
  }
}

/** Whether a loop continues; updates its heartbeat. */
function updateHeartbeat(heartbeat: Heartbeat, { aborted }: AbortSignal): boolean {
  if (aborted) heartbeat.stop()
  else heartbeat.update()
  return !aborted
}

/** The Lease itself, and when this candidate observed its last change. */
function createLeaseLock(options: LeaseOptions, { leaseMs, renewMs }: LeaseTimes) {
  const { api, namespace, name, identity, scheduler } = options
  const path = pathOf(LEASES, { namespace, name })
  let observed: { readonly version: string; readonly atMs: number } | undefined
  let latest: Lease | undefined
  const observe = (lease: Lease) => {
    latest = lease
    const version = lease.metadata.resourceVersion ?? ''
    if (observed?.version !== version) observed = { version, atMs: scheduler.nowMs() }
    return lease
  }
  const write = async (spec: LeaseSpec, at: { signal?: AbortSignal; msMax: number }) => {
    const call = writeOf(spec, { name, namespace, ...latest?.metadata })
    observe((await api.call({ ...call, ...at })) as Lease)
  }
  const isFree = ({ spec }: Lease) => {
    const holder = spec?.holderIdentity ?? ''
    if (holder === '' || holder === identity) return true
    const durationMs = Math.max((spec?.leaseDurationSeconds ?? 0) * 1000, 1)
    return observed !== undefined && scheduler.nowMs() - observed.atMs >= durationMs
  }
  return {
    /** `conflict`: another client changed the Lease in the meantime. Throws KubeError. */
    async acquireOrRenew(
      signal: AbortSignal,
      msMax: number,
    ): Promise<'held' | 'other' | 'conflict'> {
      const at = { signal, msMax: Math.min(msMax, renewMs) }
      const isOurs = latest?.spec?.holderIdentity === identity
      try {
        // Our last write is current unless the server reports a conflict.
        if (!isOurs) observe((await api.call({ method: 'GET', path, ...at })) as Lease)
      } catch (error) {
        if (!isStatus(error, 404)) throw error
        latest = undefined
      }
      if (latest !== undefined && !isFree(latest)) return 'other'
      try {
        await write(specOf(latest?.spec, { identity, leaseMs, wallMs: options.wallMs() }), at)
        return 'held'
      } catch (error) {
        latest = undefined // re-read before the next attempt
        if (isStatus(error, 409) || isStatus(error, 404)) return 'conflict'
        throw error
      }
    },
    /** Throws KubeError. */
    async release(): Promise<void> {
      const at = { msMax: RELEASE_MS_MAX }
      for (let attempts = 1; ; attempts++) {
        // The stop may have aborted a renewal that the server applied: re-read it.
        if (latest === undefined) observe((await api.call({ method: 'GET', path, ...at })) as Lease)
        const before = latest?.spec
        if (before?.holderIdentity !== identity) return
        const spec = { ...before, holderIdentity: '', leaseDurationSeconds: 1 }
        try {
          await write({ ...spec, renewTime: microTime(options.wallMs()) }, at)
          return
        } catch (error) {
          latest = undefined
          // The renewal was applied after the read, or another client wrote: read and retry.
          if (!isStatus(error, 409) || attempts === RELEASE_ATTEMPTS_MAX) throw error
        }
      }
    },
  }
}

/** The call that updates the observed version of a Lease, or creates it. */
function writeOf(
  spec: LeaseSpec,
  metadata: Lease['metadata'] & { readonly name: string; readonly namespace: string },
) {
  const { name, namespace, resourceVersion } = metadata // JSON omits undefined
  const body = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, resourceVersion },
    spec,
  }
  return resourceVersion === undefined
    ? ({ method: 'POST', path: pathOf(LEASES, { namespace }), body } as const)
    : ({ method: 'PUT', path: pathOf(LEASES, { namespace, name }), body } as const)
}

/** The spec of a Lease that is acquired or renewed. */
function specOf(
  before: LeaseSpec | undefined,
  { identity, leaseMs, wallMs }: { identity: string; leaseMs: number; wallMs: number },
): LeaseSpec {
  const now = microTime(wallMs)
  const isSame = before?.holderIdentity === identity
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1000),
    acquireTime: isSame ? (before.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: (before?.leaseTransitions ?? 0) + (isSame || !before ? 0 : 1),
  }
}
