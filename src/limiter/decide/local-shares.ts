// The hits that one of several limiters may admit locally while the store is slow or unavailable: a
// share of the remainder that the store last reported. Locally admitted hits are pending, and
// subtracted from that share, until the store has counted them or their window is over.
import { LRUCache } from 'lru-cache'
import type { Decision, Limit } from '../../limits/algorithm.ts'
import type { CounterUpdate, CounterStore } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'

/** The store's decisions for one call; `undefined`: the call failed. */
type StoreDecisions = readonly Decision[] | undefined

/** Counters of this process only. */
interface LocalCounters extends Pick<CounterStore, 'reset'> {
  consumeNow(updates: readonly CounterUpdate[]): readonly Decision[]
  /** Sets a counter so that `remaining` hits remain, at most the whole limit. */
  setRemaining(update: CounterUpdate, remaining: number): void
}

/** Dependencies of the shares. */
export interface LocalSharesOptions {
  /** Number of processes that share each limit. */
  readonly replicas: number
  /** Counters of the shares. */
  readonly local: LocalCounters
  /** Counters of the hits that the store has not confirmed. They use the whole limits. */
  readonly pending: Pick<LocalCounters, 'consumeNow' | 'reset'>
  /** Whether the store has stopped responding: then only local decisions admit hits. */
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
  /** Discards the reports and hits of these counters, which an operator has reset. */
  reset(updates: readonly CounterUpdate[]): Promise<void>
}

/**
 * The fraction of the remainder that several processes together admit locally while the store is
 * slow. The store may admit the whole remainder, too: in total at most 1.2 times the limit plus one
 * hit per process. One process alone admits the whole remainder.
 */
const SLOW_FRACTION = 0.2
const COUNTERS_MAX = 50_000

/** What the store last reported of a counter. */
interface Report {
  /** The remainder; the whole limit if nothing was reported. */
  remaining: number
  /** The time from the report until the whole limit is available. */
  resetUs: number
  reportedAtUs: number
  /** Hits admitted locally since the report. */
  localHits: number
  /** The conditions under which the local counter was set; `undefined` after a new report. */
  setUnder: string | undefined
  setUntilUs: number
}

/** Creates the shares, without any counters. */
export function createLocalShares(options: LocalSharesOptions): LocalShares {
  const { replicas, local, nowUs } = options
  const reports = new LRUCache<string, Report>({ max: COUNTERS_MAX })
  const shareFor = sharedAmong(replicas)
  const pending = createPendingHits(options)

  const record: LocalShares['record'] = (updates, decisions) => {
    const atUs = nowUs()
    updates.forEach(({ key }, at) => {
      const decision = decisions[at]
      if (decision === undefined) return
      const report = reports.get(key)
      if (report !== undefined) updateReport(report, decision, atUs)
      else if (decision.resetUs > 0) reports.set(key, reportOf(decision, atUs))
    })
  }
  /** Sets the local counter to its share, unless it is already set. */
  const prepare = (update: CounterUpdate) => {
    const mode = options.isUnresponsive() ? 'unresponsive' : 'slow'
    const { algorithm, limit, key } = update
    const atUs = nowUs()
    let report = reports.get(key)
    if (report === undefined) {
      report = reportOf({ remaining: freshRemaining(update, atUs), resetUs: 0 }, atUs)
      reports.set(key, report)
    }
    const elapsedUs = atUs - report.reportedAtUs
    const isReset = elapsedUs >= report.resetUs
    const setUnder = `${mode} ${isReset ? 'after' : 'before'} its reset`
    if (report.setUnder === setUnder && atUs < report.setUntilUs) return
    const remaining = isReset
      ? freshRemaining(update, atUs)
      : algorithm.remainingAfter(report, elapsedUs, limit)
    const hits = unreported(update, { report, elapsedUs, pending: pending.hitsOf(update) })
    const share = shareFor(update)
    local.setRemaining(share, localRemaining(remaining, { pending: hits, mode, replicas }))
    report.setUnder = setUnder
    report.setUntilUs = atUs + lifetimeUs(share, atUs)
  }
  return {
    record,
    decide(updates, delayed) {
      updates.forEach(prepare)
      const decisions = local.consumeNow(updates.map(shareFor))
      const consumed = consumedBy(updates, decisions)
      for (const { key, hits } of consumed) {
        const report = reports.get(key)
        if (report !== undefined) report.localHits += hits
      }
      const confirm = pending.add(consumed)
      // `delayed` never rejects, and is settled within the timeout of the store call.
      void delayed?.then((stored) => {
        if (stored === undefined) return // the store may or may not have counted the hits
        confirm()
        record(updates, stored)
      })
      return decisions
    },
    async reset(updates) {
      for (const { key } of updates) reports.delete(key)
      await Promise.all([local.reset(updates), options.pending.reset(updates)])
    },
  }
}

function updateReport(report: Report, { remaining, resetUs }: Decision, atUs: number): void {
  report.remaining = remaining
  report.resetUs = resetUs
  report.reportedAtUs = atUs
  report.localHits = 0
  report.setUnder = undefined
}

/** The updates of an admitted call that consume hits. */
function consumedBy(
  updates: readonly CounterUpdate[],
  decisions: readonly Decision[],
): readonly CounterUpdate[] {
  if (isDenied(updates, decisions)) return []
  return updates.filter(({ hits }, at) => hits > 0 && decisions[at]?.admitted === true)
}

function reportOf(
  { remaining, resetUs }: Pick<Report, 'remaining' | 'resetUs'>,
  atUs: number,
): Report {
  return {
    ...{ remaining, resetUs, reportedAtUs: atUs },
    ...{ localHits: 0, setUnder: undefined, setUntilUs: 0 },
  }
}

/** Hits of this process that the report does not include. */
function unreported(
  { algorithm, limit }: CounterUpdate,
  given: { report: Report; elapsedUs: number; pending: number },
): number {
  const { report, elapsedUs, pending } = given
  if (!algorithm.drains) return pending
  // The hits of the report drain first: until its reset, no later hit has drained.
  const drainUs = Math.max(0, elapsedUs - report.resetUs)
  const drained = Math.floor((drainUs * limit.requests) / limit.windowUs)
  return Math.max(pending, report.localHits - drained)
}

/** Time in µs after which the local counter is outdated: Infinity if its hits drain. */
function lifetimeUs({ algorithm, limit }: CounterUpdate, nowUs: number): number {
  if (algorithm.drains) return Infinity
  return algorithm.decide({ state: undefined, hits: 1, nowUs, limit }).resetUs || Infinity
}

/** Counts hits admitted locally that the store has not confirmed. */
function createPendingHits({ pending, nowUs }: LocalSharesOptions) {
  return {
    /** Pending hits that are still in effect. */
    hitsOf(update: CounterUpdate): number {
      const [decision] = pending.consumeNow([{ ...update, hits: 0 }])
      return freshRemaining(update, nowUs()) - (decision?.remaining ?? 0)
    },
    /** Adds hits; the returned function removes them. */
    add(updates: readonly CounterUpdate[]): () => void {
      const atUs = nowUs()
      const added = updates.map((update) => [update, pending.consumeNow([update])[0]] as const)
      return () => {
        for (const [update, decision] of added) {
          if (decision?.admitted !== true) continue
          const { algorithm, limit, hits } = update
          // After this time, a refund would remove hits of a later window.
          if (nowUs() - atUs < algorithm.refundableUs(decision, limit))
            pending.consumeNow([{ ...update, hits: -hits }])
        }
      }
    },
  }
}

/** Hits of one counter that this process may admit without the store. */
function localRemaining(
  remaining: number,
  given: { pending: number; mode: 'slow' | 'unresponsive'; replicas: number },
): number {
  const { pending, mode, replicas } = given
  if (remaining < 1) return 0
  const fraction = mode === 'unresponsive' || replicas === 1 ? 1 : SLOW_FRACTION
  return Math.max(0, Math.max(1, Math.floor((fraction * remaining) / replicas)) - pending)
}

/** The remainder of an unused counter. */
function freshRemaining({ algorithm, limit }: CounterUpdate, nowUs: number): number {
  return algorithm.decide({ state: undefined, hits: 0, nowUs, limit }).remaining
}

/** Returns a function that scales a limit down to the share of one process. */
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
