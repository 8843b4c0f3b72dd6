// The hits that one of several limiters may admit locally while the store is slow or unavailable: a
// share of the remainder that the store last reported. Locally admitted hits are pending, and
// subtracted from that share, until the store reports a remainder that includes them.
import { LRUCache } from 'lru-cache'
import type { Decision, Limit } from '../../limits/algorithm.ts'
import type { CounterUpdate, CounterStore } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'

/** The store's decisions for one call; `undefined`: the call failed. */
type StoreDecisions = readonly Decision[] | undefined

/** Counters of this process only. */
export interface LocalCounters extends Pick<CounterStore, 'reset'> {
  consumeNow(updates: readonly CounterUpdate[]): readonly Decision[]
  /** Sets a counter so that `remaining` hits remain, at most the whole limit. */
  setRemaining(update: CounterUpdate, remaining: number): void
}

/** Dependencies of the shares. */
export interface LocalSharesOptions {
  /** Number of processes that share each limit. */
  readonly replicas: number
  readonly local: LocalCounters
  /** Whether the store is unresponsive: it then admits no hits in addition to the local ones. */
  readonly isUnresponsive: () => boolean
  /** The monotonic clock. */
  readonly nowUs: () => number
}

/** The shares of this process. */
export interface LocalShares {
  /** Records decisions of the store. */
  record(updates: readonly CounterUpdate[], decisions: readonly Decision[]): void
  /**
   * Decides a call without the store. `delayed` resolves to the store's decisions for it;
   * `undefined`: the store was not called.
   */
  decide(
    updates: readonly CounterUpdate[],
    delayed: Promise<StoreDecisions> | undefined,
  ): readonly Decision[]
}

/**
 * The share of the remainder that all processes together admit locally while the store is slow. The
 * store may admit the whole remainder, too: in total at most 1.2 times the limit plus one hit per
 * process.
 */
const SLOW_SHARE = 0.2
const COUNTERS_MAX = 50_000

/** The last observed state of one counter. */
interface TrackedCounter {
  /** The remainder that the store last reported; the whole limit if it reported none. */
  remaining: number
  /** Time at which the whole limit is available. */
  resetAtUs: number
  /** Hits admitted locally that the store has not confirmed. */
  pending: number
  /** The store's state when the local counter was set; `undefined` after a new report. */
  setForMode: 'slow' | 'unresponsive' | undefined
}

/** Creates the shares, without any counters. */
export function createLocalShares(options: LocalSharesOptions): LocalShares {
  const { replicas, local, isUnresponsive, nowUs } = options
  const counters = new LRUCache<string, TrackedCounter>({ max: COUNTERS_MAX })
  const shareFor = sharedAmong(replicas)

  const recordOne = (key: string, { remaining, resetUs }: Decision, atUs: number) => {
    const tracked = counters.get(key)
    if (tracked === undefined || tracked.resetAtUs <= atUs) {
      if (resetUs > 0) counters.set(key, trackedCounterOf(remaining, atUs + resetUs))
      return
    }
    tracked.remaining = remaining
    tracked.resetAtUs = Math.max(tracked.resetAtUs, atUs + resetUs) // pending hits may extend it
    tracked.setForMode = undefined
  }
  const record = (updates: readonly CounterUpdate[], decisions: readonly Decision[]) => {
    const atUs = nowUs()
    decisions.forEach((decision, at) => {
      const update = updates[at]
      if (update !== undefined) recordOne(update.key, decision, atUs)
    })
  }
  /** Sets the local counter to its share, unless it is already set. */
  const prepare = (update: CounterUpdate): TrackedCounter => {
    const [mode, atUs] = [isUnresponsive() ? 'unresponsive' : 'slow', nowUs()] as const
    let tracked = counters.get(update.key)
    if (tracked === undefined || tracked.resetAtUs <= atUs) {
      tracked = trackedCounterOf(freshRemaining(update, atUs), atUs)
      counters.set(update.key, tracked)
    }
    if (tracked.setForMode !== mode) {
      local.setRemaining(shareFor(update), localRemaining(tracked, { mode, replicas }))
      tracked.setForMode = mode
    }
    return tracked
  }
  return {
    record,
    decide(updates, delayed) {
      const tracked = updates.map(prepare)
      const decisions = local.consumeNow(updates.map(shareFor))
      const isAdmitted = !isDenied(updates, decisions)
      const pending = tracked.map((one, at) => {
        const { admitted = false, resetUs = 0 } = decisions[at] ?? {}
        const hits = isAdmitted && admitted ? Math.max(0, updates[at]?.hits ?? 0) : 0
        one.pending += hits
        one.resetAtUs = Math.max(one.resetAtUs, nowUs() + resetUs)
        return hits
      })
      // `delayed` never rejects, and is settled within the timeout of the store call.
      void delayed?.then((stored) => {
        if (stored === undefined) return // the store may or may not have counted the hits
        tracked.forEach((one, at) => {
          one.pending -= pending[at] ?? 0
        })
        record(updates, stored)
      })
      return decisions
    },
  }
}

function trackedCounterOf(remaining: number, resetAtUs: number): TrackedCounter {
  return { remaining, resetAtUs, pending: 0, setForMode: undefined }
}

/** Hits of one counter that this process may admit without the store. */
function localRemaining(
  { remaining, pending }: TrackedCounter,
  { mode, replicas }: { mode: 'slow' | 'unresponsive'; replicas: number },
): number {
  if (remaining < 1) return 0
  const share = mode === 'unresponsive' || replicas === 1 ? 1 : SLOW_SHARE
  return Math.max(0, Math.max(1, Math.floor((share * remaining) / replicas)) - pending)
}

/** The remainder of an unused counter. */
function freshRemaining({ algorithm, limit }: CounterUpdate, nowUs: number): number {
  return algorithm.decide({ state: undefined, hits: 0, nowUs, limit }).remaining
}

/** Returns a function that replaces a limit by the share of one process. */
function sharedAmong(replicas: number): (update: CounterUpdate) => CounterUpdate {
  if (replicas === 1) return (update) => update
  const shares = new WeakMap<Limit, Limit>() // dropped with the rules
  const portion = (whole: number) => (whole === 0 ? 0 : Math.max(1, Math.floor(whole / replicas)))
  return (update) => {
    const { limit } = update
    let share = shares.get(limit)
    if (share === undefined) {
      share = { ...limit, requests: portion(limit.requests), burst: portion(limit.burst) }
      shares.set(limit, share)
    }
    return { ...update, limit: share }
  }
}
