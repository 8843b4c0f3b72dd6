// Leader election with a Lease: the holder renews it; a candidate acquires it after observing no
// renewal for the whole Lease duration by its own clock. The election does not fence: callers check
// `isLeading` before each write.
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { formatMicroTime } from './conditions.ts'
import { hasStatus, KubeError } from './kube-error.ts'
import { pathOf } from './objects.ts'
import { createHeartbeat, type Heartbeat } from './heartbeat.ts'
import { pauseFor, type Scheduler } from './scheduler.ts'

/** Options of an election. */
export interface LeaseOptions {
  readonly api: KubeApi
  readonly namespace: string
  readonly name: string
  /** Unique per candidate. */
  readonly identity: string
  readonly scheduler: Scheduler
  readonly random: () => number
  /** Unix time, only for the timestamps in the Lease. */
  readonly wallMs: () => number
  readonly metrics: Pick<Metrics, 'isLeader'>
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly times?: LeaseTimes
}

/** client-go's durations, in milliseconds. */
interface LeaseTimes {
  /** Time without a renewal after which another candidate may acquire the Lease. */
  readonly leaseDurationMs: number
  /** Time without a renewal after which a leader loses leadership; less than `leaseDurationMs`. */
  readonly renewDeadlineMs: number
  /** Pause between two attempts to acquire or renew. */
  readonly retryPeriodMs: number
}

const TIMES: LeaseTimes = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 }
/** The longest pause of a candidate, as a multiple of `retryPeriodMs`. */
const JITTER_MAX = 1.2
const RELEASE_MS_MAX = 1000
const RELEASE_ATTEMPTS_MAX = 2
/** An iteration (one pause and at most two calls) that takes longer counts as stuck. */
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

interface CallBounds {
  readonly signal?: AbortSignal
  readonly msMax: number
}

/** The election of one candidate. */
export interface Election {
  /**
   * Resolves with `true` once leading, or with `false` after `signal` aborts; releases the Lease if
   * the aborted call may have acquired it.
   */
  readonly acquire: (signal: AbortSignal) => Promise<boolean>
  /** Renews the Lease; resolves once leadership is lost or `signal` aborts. */
  readonly renew: (signal: AbortSignal) => Promise<'lost' | 'stopped'>
  /** Whether this candidate leads; until its renew deadline no other candidate can. */
  readonly isLeading: () => boolean
  /** Whether `acquire` or `renew` hangs: because of a defect, or in `ClusterAccess.read`. */
  readonly isStuck: () => boolean
  /** Releases the Lease, so that other candidates need not wait; never rejects with KubeError. */
  readonly release: () => Promise<void>
}

/** Creates an election; it is not started. */
export function createElection(options: LeaseOptions): Election {
  const { name, scheduler, random, metrics, log, identity, times = TIMES } = options
  const lock = createLeaseLock(options, times)
  /** Start of the last successful renewal. */
  let renewedAtMs = -Infinity
  const isLeading = () => scheduler.nowMs() - renewedAtMs < times.renewDeadlineMs
  const attempt = async (signal: AbortSignal, msMax: number, verb: 'acquire' | 'renew') => {
    const startedMs = scheduler.nowMs()
    try {
      const outcome = await lock.acquireOrRenew(signal, msMax)
      if (outcome === 'held') renewedAtMs = startedMs
      return outcome
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (!signal.aborted) log.warn({ err: error, lease: name }, `failed to ${verb} the Lease`)
      return 'failed'
    }
  }
  const jitteredPauseMs = () => times.retryPeriodMs * (1 + random() * (JITTER_MAX - 1))
  const stepDown = () => {
    renewedAtMs = -Infinity
    metrics.isLeader.set({ name }, 0)
  }
  stepDown()
  const release = async () => {
    try {
      await lock.release()
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      log.warn({ err: error, lease: name }, 'Lease not released: it expires')
    }
  }
  const heartbeat = createHeartbeat(scheduler, ITERATION_MS_MAX)
  return {
    isLeading,
    isStuck: heartbeat.isStale,
    async acquire(signal) {
      while (updateHeartbeat(heartbeat, signal)) {
        if ((await attempt(signal, times.renewDeadlineMs, 'acquire')) === 'held' && isLeading()) {
          metrics.isLeader.set({ name }, 1)
          log.info({ lease: name, identity }, 'acquired leadership')
          return true
        }
        await pauseFor(scheduler, jitteredPauseMs(), signal)
      }
      if (lock.mayHold()) await release()
      return false
    },
    async renew(signal) {
      while (updateHeartbeat(heartbeat, signal)) {
        await pauseFor(scheduler, times.retryPeriodMs, signal)
        if (!updateHeartbeat(heartbeat, signal)) return 'stopped'
        const leftMs = times.renewDeadlineMs - (scheduler.nowMs() - renewedAtMs)
        const outcome = leftMs > 0 ? await attempt(signal, leftMs, 'renew') : 'failed'
        if (outcome === 'held' || (outcome !== 'held-by-other' && isLeading())) continue
        if (!updateHeartbeat(heartbeat, signal)) return 'stopped'
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
      if (wasLeading) await release()
    },
  }
}

/** Updates the heartbeat of a loop; returns whether the loop continues. */
function updateHeartbeat(heartbeat: Heartbeat, { aborted }: AbortSignal): boolean {
  if (aborted) heartbeat.stop()
  else heartbeat.update()
  return !aborted
}

/** Reads and writes the Lease, and records when this candidate observed its last change. */
function createLeaseLock(options: LeaseOptions, { leaseDurationMs, renewDeadlineMs }: LeaseTimes) {
  const { api, namespace, name, identity, scheduler } = options
  const path = pathOf(LEASES, { namespace, name })
  let observed: { readonly version: string; readonly atMs: number } | undefined
  let latest: Lease | undefined
  /** Whether this candidate has sent a write, and therefore may hold the Lease. */
  let mayHold = false
  const observe = (lease: Lease | undefined) => {
    latest = lease
    const version = lease?.metadata.resourceVersion ?? ''
    if (observed?.version !== version) observed = { version, atMs: scheduler.nowMs() }
  }
  const write = async (spec: LeaseSpec, bounds: CallBounds) => {
    const call = renderWrite(spec, { name, namespace, ...latest?.metadata })
    observe((await api.call({ ...call, ...bounds })) as Lease)
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
    ): Promise<'held' | 'held-by-other' | 'conflict'> {
      const bounds = { signal, msMax: Math.min(msMax, renewDeadlineMs) }
      const isOurs = latest?.spec?.holderIdentity === identity
      // Our last write is current unless the server reports a conflict.
      if (!isOurs) observe(await readLease(api, path, bounds))
      if (latest !== undefined && !isFree(latest)) return 'held-by-other'
      const spec = specOf(latest?.spec, { identity, leaseDurationMs, wallMs: options.wallMs() })
      mayHold = true
      try {
        await write(spec, bounds)
        return 'held'
      } catch (error) {
        latest = undefined // re-read before the next attempt
        if (!hasStatus(error, 409) && !hasStatus(error, 404)) throw error
        return 'conflict'
      }
    },
    mayHold: () => mayHold,
    /** Throws KubeError. */
    async release(): Promise<void> {
      const bounds = { msMax: RELEASE_MS_MAX }
      for (let attempts = 1; ; attempts++) {
        // The stop may have aborted a write that the server applied: re-read the Lease.
        if (latest === undefined) observe(await readLease(api, path, bounds))
        const before = latest?.spec
        if (before?.holderIdentity !== identity) return
        const spec = { ...before, holderIdentity: '', leaseDurationSeconds: 1 }
        try {
          await write({ ...spec, renewTime: formatMicroTime(options.wallMs()) }, bounds)
          return
        } catch (error) {
          latest = undefined
          // The renewal was applied after the read, or another client wrote: read and retry.
          if (!hasStatus(error, 409) || attempts === RELEASE_ATTEMPTS_MAX) throw error
        }
      }
    },
  }
}

/** The Lease at `path`; `undefined` if it does not exist. Throws KubeError. */
async function readLease(
  api: KubeApi,
  path: string,
  bounds: CallBounds,
): Promise<Lease | undefined> {
  try {
    return (await api.call({ method: 'GET', path, ...bounds })) as Lease
  } catch (error) {
    if (!hasStatus(error, 404)) throw error
    return undefined
  }
}

/** Renders the call that updates the observed version of a Lease, or creates it. */
function renderWrite(
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
  {
    identity,
    leaseDurationMs,
    wallMs,
  }: { identity: string; leaseDurationMs: number; wallMs: number },
): LeaseSpec {
  const now = formatMicroTime(wallMs)
  const isSame = before?.holderIdentity === identity
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
    acquireTime: isSame ? (before.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: (before?.leaseTransitions ?? 0) + (isSame || !before ? 0 : 1),
  }
}
