// The levels of all pools in the store, polled with one read for all. Reports the pools that
// changed, and when the store becomes unavailable or recovers.
import type { ClaimSample } from '../../codes/claim-rate.ts'
import { addLongTermSample, sustainedRateOf } from '../../codes/plan-refill-rate.ts'
import { levelOf, type Pool } from '../../codes/pool.ts'
import type { ObservedStore } from '../../codes/observed-state.ts'
import { type Background, runInBackground } from '../../resilience/background.ts'
import { pause } from '../../resilience/deadline.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** The row of a pool in the store. */
export interface StoredPool extends Pick<Pool, 'pool' | 'minted' | 'claimed'> {
  readonly owner: string | null
  readonly lowWater: number | null
  readonly target: number | null
}

/** The levels as of the last read. */
export interface Levels {
  /** Returns the state of a pool; `unknown` if no read has succeeded within VALID_MS. */
  readonly get: (pool: string) => ObservedStore
  /** Re-reads the levels; returns whether the read succeeded. */
  readonly refresh: () => Promise<boolean>
  /** Starts polling. */
  readonly start: () => Background
  /** Resolves after the first read, successful or not. */
  readonly firstRead: Promise<void>
}

/** The polling interval, and how long a read is valid. */
const READ_EVERY_MS = 15_000
const VALID_MS = 60_000
/** How long the first read waits for the connection, without which it can only fail. */
const CONNECT_MS_MAX = 10_000
/** Maximum number of pools whose state is known. */
const POOLS_MAX = 1000
const TOO_MANY_POOLS = `the store has more than ${POOLS_MAX} pools`

interface CachedPool {
  readonly row: StoredPool
  readonly samples: readonly ClaimSample[]
}

/** Creates levels; `refresh` and `start` read them. */
export function createLevels(deps: {
  /** Throws if the store is unavailable. Must have a deadline far below VALID_MS. */
  readonly readPools: () => Promise<readonly StoredPool[]>
  /** Called with pools that changed, or `all` if the state of every pool may have changed. */
  readonly onChange: (pools: readonly string[] | 'all') => void
  /** Called with the first of consecutive failures. */
  readonly onError: (error: unknown) => void
  /** Resolves once the store is connected. */
  readonly connected: Promise<unknown>
  /** Monotonic. */
  readonly nowMs: () => number
  readonly metrics: Pick<Metrics, 'poolReadsFailed'>
  readonly everyMs?: number
}): Levels {
  const { nowMs, onChange } = deps
  const cache = new Map<string, CachedPool>()
  let readAtMs = -Infinity
  let reason = 'the store has not responded yet'
  let wasFresh = false
  /** Whether a read has failed since the last success: `refresh` may have returned false. */
  let hasFailed = false
  const uncached = trackUncached(deps.onError)
  const isFresh = () => nowMs() - readAtMs < VALID_MS
  const { promise: firstRead, resolve: settle } = Promise.withResolvers<undefined>()
  const read = async () => {
    let changed: readonly string[] = []
    let [isOk, areAllChanged] = [false, false]
    try {
      const rows = await deps.readPools()
      readAtMs = nowMs()
      changed = updateCache(cache, rows, readAtMs)
      isOk = true
      areAllChanged = uncached.note(rows.length) || hasFailed
      hasFailed = false
    } catch (error) {
      deps.metrics.poolReadsFailed.inc(1)
      reason = 'the code store is unavailable'
      if (!hasFailed) deps.onError(error) // once, until the store recovers
      hasFailed = true
    }
    const hasFreshnessChanged = wasFresh !== isFresh()
    wasFresh = isFresh()
    settle(undefined)
    if (hasFreshnessChanged || areAllChanged) onChange('all')
    else if (changed.length > 0) onChange(changed)
    return isOk
  }
  const refresh = coalesceReads(read)
  const untilConnected = waitOnce(deps.connected)
  return {
    get(pool) {
      if (!isFresh()) return { kind: 'unknown', reason }
      const found = cache.get(pool)
      if (found === undefined) return uncached.state()
      return { kind: 'present', ...observedOf(found) }
    },
    refresh,
    firstRead,
    start: () =>
      runInBackground({
        everyMs: deps.everyMs ?? READ_EVERY_MS,
        task: async (signal) => {
          await untilConnected(signal)
          if (!signal.aborted) await refresh()
        },
        onError: deps.onError,
      }),
  }
}

/** The state of pools that are not in the cache; the first read of too many pools is an error. */
function trackUncached(onError: (error: unknown) => void) {
  let state: ObservedStore = { kind: 'absent' }
  return {
    state: () => state,
    /** Returns whether the state has changed. */
    note(pools: number): boolean {
      const before = state.kind
      state = pools <= POOLS_MAX ? { kind: 'absent' } : { kind: 'unknown', reason: TOO_MANY_POOLS }
      if (state.kind === before) return false
      if (state.kind === 'unknown') onError(new Error(TOO_MANY_POOLS))
      return true
    },
  }
}

function observedOf({ row, samples }: CachedPool) {
  const { owner, lowWater, target } = row
  return { level: levelOf(row), rate: sustainedRateOf(samples), owner, lowWater, target }
}

/** Returns a function whose first call waits for the connection, up to CONNECT_MS_MAX. */
function waitOnce(connected: Promise<unknown>): (signal: AbortSignal) => Promise<void> {
  let hasWaited = false
  return async (signal) => {
    if (!hasWaited) await Promise.race([connected, pause(CONNECT_MS_MAX, signal)])
    hasWaited = true
  }
}

/**
 * Updates the cache from a read; returns the pools that were changed, added or removed. Pools that
 * are in the cache already have priority.
 */
function updateCache(
  cache: Map<string, CachedPool>,
  read: readonly StoredPool[],
  atMs: number,
): string[] {
  const changed: string[] = []
  const rankOf = ({ pool }: StoredPool) => (cache.has(pool) ? 0 : 1)
  const rows = [...read].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, POOLS_MAX)
  const names = new Set(rows.map(({ pool }) => pool))
  for (const pool of [...cache.keys()]) {
    if (names.has(pool)) continue
    cache.delete(pool)
    changed.push(pool)
  }
  for (const row of rows) {
    const before = cache.get(row.pool)
    const samples = addLongTermSample(before?.samples ?? [], { atMs, claimed: row.claimed })
    cache.set(row.pool, { row, samples })
    if (before === undefined || !isSameRow(before.row, row)) changed.push(row.pool)
  }
  return changed
}

/** Runs one read at a time. Calls during a read share the next one: none gets an older state. */
function coalesceReads(read: () => Promise<boolean>): () => Promise<boolean> {
  let current: Promise<boolean> | undefined
  let next: Promise<boolean> | undefined
  const start = () => {
    const reading = read().finally(() => {
      if (current === reading) current = undefined
    })
    current = reading
    return reading
  }
  return () => {
    if (current === undefined) return start()
    next ??= current.then(() => {
      next = undefined
      return start()
    })
    return next
  }
}

function isSameRow(one: StoredPool, other: StoredPool): boolean {
  return (
    one.minted === other.minted &&
    one.claimed === other.claimed &&
    one.owner === other.owner &&
    one.lowWater === other.lowWater &&
    one.target === other.target
  )
}
