// What one of several limiters may admit by itself while the store is slow or unavailable: a share
// of the remainder that the store last reported. Hits admitted locally are pending, and subtracted
// from that share, until the store reports the remainder after them.
import { LRUCache } from 'lru-cache'
import type { Decision, Limit } from '../../limits/algorithm.ts'
import type { CounterHits } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'

/** The store's decisions for one call; `undefined`: it failed, or was not called. */
type StoreDecisions = readonly Decision[] | undefined

/** Counters of this process only. */
export interface LocalCounters {
  consumeNow(counts: readonly CounterHits[]): readonly Decision[]
  /** Overwrites a counter so that `remaining` hits, or the whole limit if it is less, remain. */
  keepRemaining(count: CounterHits, remaining: number): void
}

/** Dependencies of the shares. */
export interface LocalSharesOptions {
  /** How many processes share each limit. */
  readonly replicas: number
  readonly local: LocalCounters
  /** Whether the store is unresponsive, so that it admits no hits either. */
  readonly isUnresponsive: () => boolean
  /** Monotonic. */
  readonly nowUs: () => number
}

/** The shares of this process. */
export interface LocalShares {
  /** Records what the store decided. */
  note(counts: readonly CounterHits[], decisions: readonly Decision[]): void
  /** Decides a call without the store; `later` resolves to the store's decisions for it. */
  decide(
    counts: readonly CounterHits[],
    later: Promise<StoreDecisions> | undefined,
  ): readonly Decision[]
}

/**
 * The share of the remainder that all processes together admit locally while the store is slow. The
 * store may admit all of it, too: in total at most 1.2 times the limit plus one hit per process.
 */
const SLOW_SHARE = 0.2
const COUNTERS_MAX = 50_000

/** What this process knows about one counter. */
interface KnownCounter {
  /** The remainder that the store last reported; the whole limit if it reported none. */
  remaining: number
  /** When the whole limit is available. */
  untilUs: number
  /** Hits admitted locally that the store has not confirmed. */
  pending: number
  /** The store's state for which the local counter was set, if it was. */
  sharedAs: 'slow' | 'unresponsive' | undefined
}

/** Creates the shares, with no known counters. */
export function createLocalShares(options: LocalSharesOptions): LocalShares {
  const { replicas, local, isUnresponsive, nowUs } = options
  const counters = new LRUCache<string, KnownCounter>({ max: COUNTERS_MAX })
  const shareFor = sharedAmong(replicas)

  const note = (key: string, { remaining, resetUs }: Decision, atUs: number) => {
    const known = counters.get(key)
    if (known === undefined || known.untilUs <= atUs) {
      if (resetUs > 0) counters.set(key, knownCounterOf(remaining, atUs + resetUs))
      return
    }
    known.remaining = remaining
    known.untilUs = Math.max(known.untilUs, atUs + resetUs) // pending hits may reset later
    known.sharedAs = undefined
  }
  const noteAll = (counts: readonly CounterHits[], decisions: readonly Decision[]) => {
    const atUs = nowUs()
    decisions.forEach((decision, at) => {
      const count = counts[at]
      if (count !== undefined) note(count.key, decision, atUs)
    })
  }
  /** Sets the local counter to its share, unless it is set already. */
  const prepare = (count: CounterHits): KnownCounter => {
    const [mode, atUs] = [isUnresponsive() ? 'unresponsive' : 'slow', nowUs()] as const
    let known = counters.get(count.key)
    if (known === undefined || known.untilUs <= atUs) {
      known = knownCounterOf(freshRemaining(count, atUs), atUs)
      counters.set(count.key, known)
    }
    if (known.sharedAs !== mode) {
      local.keepRemaining(shareFor(count), allowed(known, { mode, replicas }))
      known.sharedAs = mode
    }
    return known
  }
  return {
    note: noteAll,
    decide(counts, later) {
      const known = counts.map(prepare)
      const decisions = local.consumeNow(counts.map(shareFor))
      const isAdmitted = !isDenied(counts, decisions)
      const pending = known.map((one, at) => {
        const { admitted = false, resetUs = 0 } = decisions[at] ?? {}
        const hits = isAdmitted && admitted ? Math.max(0, counts[at]?.cost ?? 0) : 0
        one.pending += hits
        one.untilUs = Math.max(one.untilUs, nowUs() + resetUs)
        return hits
      })
      // `later` never rejects, and has the time limit of the store call.
      void later?.then((stored) => {
        if (stored === undefined) return // unknown whether the store counted the hits
        known.forEach((one, at) => {
          one.pending -= pending[at] ?? 0
        })
        noteAll(counts, stored)
      })
      return decisions
    },
  }
}

function knownCounterOf(remaining: number, untilUs: number): KnownCounter {
  return { remaining, untilUs, pending: 0, sharedAs: undefined }
}

/** Hits of one counter that this process may admit now. */
function allowed(
  { remaining, pending }: KnownCounter,
  { mode, replicas }: { mode: 'slow' | 'unresponsive'; replicas: number },
): number {
  if (remaining < 1) return 0
  const share = mode === 'unresponsive' || replicas === 1 ? 1 : SLOW_SHARE
  return Math.max(0, Math.max(1, Math.floor((share * remaining) / replicas)) - pending)
}

/** The remainder of an unused counter. */
function freshRemaining({ algorithm, limit }: CounterHits, nowUs: number): number {
  return algorithm.decide({ state: undefined, cost: 0, nowUs, limit }).remaining
}

/** Replaces the limit by the share of one of several processes. */
function sharedAmong(replicas: number): (count: CounterHits) => CounterHits {
  if (replicas === 1) return (count) => count
  const shares = new WeakMap<Limit, Limit>() // dropped with the rules
  const portion = (whole: number) => (whole === 0 ? 0 : Math.max(1, Math.floor(whole / replicas)))
  return (count) => {
    const { limit } = count
    let share = shares.get(limit)
    if (share === undefined) {
      share = { ...limit, requests: portion(limit.requests), burst: portion(limit.burst) }
      shares.set(limit, share)
    }
    return { ...count, limit: share }
  }
}
