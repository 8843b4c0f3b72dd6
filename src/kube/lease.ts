// Leadership by a Lease: who holds it renews it; another takes it once it has seen no renewal for
// its whole time by its own clock. It does not fence: whoever leads asks `isLeading` before a
// write.
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { microTime } from './conditions.ts'
import { isStatus, KubeError } from './kube-error.ts'
import { pathOf } from './objects.ts'
import { createPulse, type Pulse } from './pulse.ts'
import { pauseOn, type Scheduler } from './scheduler.ts'

/** How leadership is sought. */
export interface LeaseOptions {
  readonly api: KubeApi
  readonly namespace: string
  readonly name: string
  /** Whoever else seeks it must have another. */
  readonly identity: string
  readonly scheduler: Scheduler
  readonly random: () => number
  /** For what is written in the Lease, and decides nothing. */
  readonly wallMs: () => number
  readonly metrics: Pick<Metrics, 'isLeader'>
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly times?: LeaseTimes
}

/** client-go's. */
interface LeaseTimes {
  /** A Lease that was not renewed for so long may be taken. */
  readonly leaseMs: number
  /** A leader that could not renew for so long leads no more. */
  readonly renewMs: number
  readonly retryMs: number
}

const TIMES: LeaseTimes = { leaseMs: 15_000, renewMs: 10_000, retryMs: 2000 }
const JITTER = 1.2
const RELEASE_MS_MAX = 1000
const RELEASE_TRIES_MAX = 2
/** A turn is a pause and two calls at most: after so long it hangs. */
const TURN_MS_MAX = 60_000
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

/** Leadership that is sought. */
export interface Election {
  /** Resolves once we lead, or with `false` once `signal` aborted. */
  readonly win: (signal: AbortSignal) => Promise<boolean>
  /** Keeps what was won; resolves when it was lost, or `signal` aborted. */
  readonly keep: (signal: AbortSignal) => Promise<'lost' | 'stopped'>
  /** Whether nobody else can lead now. */
  readonly isLeading: () => boolean
  /** Whether the seeking or keeping hangs, by a defect: every call has its time. */
  readonly isStuck: () => boolean
  /** Gives it up, so that another need not wait; where that fails, the time does it. */
  readonly release: () => Promise<void>
}

/** Makes an election that has not begun. */
export function createElection(options: LeaseOptions): Election {
  const { scheduler, random, metrics, log, identity, times = TIMES } = options
  const record = createRecord(options, times)
  const name = options.name
  /** When the renewal that succeeded last was begun. */
  let renewedMs = -Infinity
  const isLeading = () => scheduler.nowMs() - renewedMs < times.renewMs
  const tryOnce = async (signal: AbortSignal, msMax: number) => {
    const begunMs = scheduler.nowMs()
    try {
      const outcome = await record.takeOrRenew(signal, msMax)
      if (outcome === 'held') renewedMs = begunMs
      return outcome
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (!signal.aborted) log.warn({ err: error, lease: name }, 'the Lease cannot be had now')
      return 'failed'
    }
  }
  const retryMs = () => times.retryMs * (1 + random() * (JITTER - 1))
  const lose = () => {
    renewedMs = -Infinity
    metrics.isLeader.set({ name }, 0)
  }
  lose()
  const isEnding = (signal: AbortSignal) => signal.aborted
  const pulse = createPulse(scheduler, TURN_MS_MAX)
  return {
    isLeading,
    isStuck: pulse.isLate,
    async win(signal) {
      while (turns(pulse, signal)) {
        if ((await tryOnce(signal, times.renewMs)) === 'held' && isLeading()) {
          metrics.isLeader.set({ name }, 1)
          log.info({ lease: name, identity }, 'leading')
          return true
        }
        await pauseOn(scheduler, retryMs(), signal)
      }
      return false
    },
    async keep(signal) {
      while (turns(pulse, signal)) {
        await pauseOn(scheduler, times.retryMs, signal)
        if (isEnding(signal)) return 'stopped'
        const leftMs = times.renewMs - (scheduler.nowMs() - renewedMs)
        const outcome = leftMs > 0 ? await tryOnce(signal, leftMs) : 'failed'
        if (outcome === 'held' || (outcome !== 'other' && isLeading())) continue
        if (isEnding(signal)) return 'stopped'
        lose()
        pulse.rest()
        log.warn({ lease: name, identity }, 'leading no more')
        return 'lost'
      }
      return 'stopped'
    },
    async release() {
      const wasLeading = isLeading()
      lose()
      if (!wasLeading) return
      try {
        await record.release()
      } catch (error) {
        if (!(error instanceof KubeError)) throw error
        log.warn({ err: error, lease: name }, 'the Lease was not released: it runs out')
      }
    },
  }
}

/** Whether a loop goes on, which its pulse is told. */
function turns(pulse: Pulse, { aborted }: AbortSignal): boolean {
  if (aborted) pulse.rest()
  else pulse.beat()
  return !aborted
}

/** The Lease itself, and when we saw it change. */
function createRecord(options: LeaseOptions, { leaseMs, renewMs }: LeaseTimes) {
  const { api, namespace, name, identity, scheduler } = options
  const path = pathOf(LEASES, { namespace, name })
  let seen: { readonly version: string; readonly atMs: number } | undefined
  let last: Lease | undefined
  const note = (lease: Lease) => {
    last = lease
    const version = lease.metadata.resourceVersion ?? ''
    if (seen?.version !== version) seen = { version, atMs: scheduler.nowMs() }
    return lease
  }
  const write = async (spec: LeaseSpec, at: { signal?: AbortSignal; msMax: number }) => {
    const call = writeOf(spec, { name, namespace, ...last?.metadata })
    note((await api.call({ ...call, ...at })) as Lease)
  }
  const isFree = ({ spec }: Lease) => {
    const holder = spec?.holderIdentity ?? ''
    if (holder === '' || holder === identity) return true
    const spanMs = Math.max((spec?.leaseDurationSeconds ?? 0) * 1000, 1)
    return seen !== undefined && scheduler.nowMs() - seen.atMs >= spanMs
  }
  return {
    /** `overtaken`: somebody changed it meanwhile, candidate or not. Throws KubeError. */
    async takeOrRenew(signal: AbortSignal, msMax: number): Promise<'held' | 'other' | 'overtaken'> {
      const at = { signal, msMax: Math.min(msMax, renewMs) }
      const isOurs = last?.spec?.holderIdentity === identity
      try {
        // What we wrote last is what stands, unless the server says otherwise.
        if (!isOurs) note((await api.call({ method: 'GET', path, ...at })) as Lease)
      } catch (error) {
        if (!isStatus(error, 404)) throw error
        last = undefined
      }
      if (last !== undefined && !isFree(last)) return 'other'
      try {
        await write(specOf(last?.spec, { identity, leaseMs, wallMs: options.wallMs() }), at)
        return 'held'
      } catch (error) {
        last = undefined // read it again before the next try
        if (isStatus(error, 409) || isStatus(error, 404)) return 'overtaken'
        throw error
      }
    },
    /** Throws KubeError. */
    async release(): Promise<void> {
      const at = { msMax: RELEASE_MS_MAX }
      for (let tries = 1; ; tries++) {
        // The stop may have cut off a renewal: whether it was done, the server says.
        if (last === undefined) note((await api.call({ method: 'GET', path, ...at })) as Lease)
        const before = last?.spec
        if (before?.holderIdentity !== identity) return
        const spec = { ...before, holderIdentity: '', leaseDurationSeconds: 1 }
        try {
          await write({ ...spec, renewTime: microTime(options.wallMs()) }, at)
          return
        } catch (error) {
          last = undefined
          // That renewal was done only now, or somebody else wrote: once more, by what stands.
          if (!isStatus(error, 409) || tries === RELEASE_TRIES_MAX) throw error
        }
      }
    },
  }
}

/** The call that writes a Lease: over the version that was seen, else anew. */
function writeOf(
  spec: LeaseSpec,
  metadata: Lease['metadata'] & { readonly name: string; readonly namespace: string },
) {
  const { name, namespace, resourceVersion } = metadata // JSON leaves out what is undefined
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

/** What is written into a Lease that is taken or renewed. */
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
