// How the pools stand in the store: all of them in one read, again and again; who watches a pool is
// told when it has changed, or when the store does not answer any more.
import type { PoolSight as ClaimSight } from '../../codes/claim-rate.ts'
import { addLongSight, sustainedRateOf } from '../../codes/plan-refill-rate.ts'
import { levelOf, type Pool } from '../../codes/pool.ts'
import type { StoredSight } from '../../codes/refill-sight.ts'
import { type Background, runInBackground } from '../../resilience/background.ts'
import { pause } from '../../resilience/deadline.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** A row of the store. */
export interface StoredPool extends Pick<Pool, 'pool' | 'minted' | 'claimed'> {
  readonly owner: string | null
  readonly lowWater: number | null
  readonly target: number | null
}

/** The levels as they were last read. */
export interface Levels {
  readonly get: (pool: string) => StoredSight
  /** Reads them anew; whether the store answered. */
  readonly refresh: () => Promise<boolean>
  /** Begins to read them again and again. */
  readonly begin: () => Background
  /** Resolves after the first read, whether the store responded or not. */
  readonly settled: Promise<void>
}

/** How often they are read; and how long one read is believed. */
const READ_EVERY_MS = 15_000
const BELIEVED_MS = 60_000
/** The first read waits so long for the connection: before that it can only fail. */
const CONNECT_MS_MAX = 10_000
/** A store never has more. */
const POOLS_MAX = 1000

interface Seen {
  readonly row: StoredPool
  readonly sights: readonly ClaimSight[]
}

/** Levels of which none has been read. */
export function createLevels(deps: {
  /** Throws where the store does not answer. */
  readonly readPools: () => Promise<readonly StoredPool[]>
  /** Told of pools that changed, or of `all` where the store came or went. */
  readonly onChange: (pools: readonly string[] | 'all') => void
  /** Told of the first failure in a row. */
  readonly onError: (error: unknown) => void
  /** Resolves once the store is connected. */
  readonly connected: Promise<unknown>
  /** Monotonic. */
  readonly nowMs: () => number
  readonly metrics: Pick<Metrics, 'poolReadsFailed'>
  readonly everyMs?: number
}): Levels {
  const { nowMs, onChange } = deps
  const seen = new Map<string, Seen>()
  let readAtMs = -Infinity
  let why = 'the store has not answered yet'
  let wasKnown = false
  /** A read failed since the last that did not: somebody may have been told so. */
  let hasFailed = false
  const isKnown = () => nowMs() - readAtMs < BELIEVED_MS
  const { promise: settled, resolve: settle } = Promise.withResolvers<undefined>()
  const read = async () => {
    let changed: readonly string[] = []
    let isAnswered = false
    let isBack = false
    try {
      const rows = await deps.readPools()
      readAtMs = nowMs()
      changed = takeRows(seen, rows, readAtMs)
      isAnswered = true
      isBack = hasFailed
      hasFailed = false
    } catch (error) {
      deps.metrics.poolReadsFailed.inc(1)
      why = 'the store of codes does not answer'
      if (!hasFailed) deps.onError(error) // once, until it has answered again
      hasFailed = true
    }
    const turned = wasKnown !== isKnown()
    wasKnown = isKnown()
    settle(undefined)
    if (turned || isBack) onChange('all')
    else if (changed.length > 0) onChange(changed)
    return isAnswered
  }
  const refresh = shareReads(read)
  const untilConnected = waitOnce(deps.connected)
  return {
    get(pool) {
      if (!isKnown()) return { kind: 'unknown', why }
      const found = seen.get(pool)
      if (found === undefined) return { kind: 'absent' }
      return { kind: 'there', ...figuresOf(found) }
    },
    refresh,
    settled,
    begin: () =>
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

function figuresOf({ row, sights }: Seen) {
  const { owner, lowWater, target } = row
  return { level: levelOf(row), rate: sustainedRateOf(sights), owner, lowWater, target }
}

/** Waits for the connection at the first call alone, and for so long at most. */
function waitOnce(connected: Promise<unknown>): (signal: AbortSignal) => Promise<void> {
  let hasWaited = false
  return async (signal) => {
    if (!hasWaited) await Promise.race([connected, pause(CONNECT_MS_MAX, signal)])
    hasWaited = true
  }
}

/** Takes rows in as they were just read; gives the names of those that changed, came or went. */
function takeRows(seen: Map<string, Seen>, rows: readonly StoredPool[], atMs: number): string[] {
  const changed: string[] = []
  const names = new Set(rows.map(({ pool }) => pool))
  for (const pool of [...seen.keys()]) {
    if (names.has(pool)) continue
    seen.delete(pool)
    changed.push(pool)
  }
  for (const row of rows.slice(0, POOLS_MAX)) {
    const before = seen.get(row.pool)
    const sights = addLongSight(before?.sights ?? [], { atMs, claimed: row.claimed })
    seen.set(row.pool, { row, sights })
    if (before === undefined || !isSame(before.row, row)) changed.push(row.pool)
  }
  return changed
}

/** One read at a time; whoever asks during one shares the next, which sees all that was before. */
function shareReads(read: () => Promise<boolean>): () => Promise<boolean> {
  let current: Promise<boolean> | undefined
  let next: Promise<boolean> | undefined
  const begin = () => {
    const reading = read().finally(() => {
      if (current === reading) current = undefined
    })
    current = reading
    return reading
  }
  return () => {
    if (current === undefined) return begin()
    next ??= current.then(() => {
      next = undefined
      return begin()
    })
    return next
  }
}

function isSame(one: StoredPool, other: StoredPool): boolean {
  return (
    one.minted === other.minted &&
    one.claimed === other.claimed &&
    one.owner === other.owner &&
    one.lowWater === other.lowWater &&
    one.target === other.target
  )
}
