// The state of one code in the model's store and shared cache, the effect of each operation, the
// events of time and faults, and the invariants. One tick of the clock is 2.5 s.
import type { Json, Op } from './replay.ts'

/** A cache entry, and its remaining lifetime in ticks. */
type Cell = readonly [value: string, ticks: number] | null

/** The link in the store: absent, active, disabled. */
export type Row = 'none' | 'on' | 'off'

/** The state of the store, the cache, the faults and the invariants. */
export interface CacheState {
  readonly row: Row
  readonly cell: Cell
  /** The entry that a failover or a restart restores. */
  readonly copy: Cell
  readonly now: number
  /** The ticks that may still pass. */
  readonly ticks: number
  /** Lookups without a response yet. */
  readonly readers: number
  readonly flushes: number
  readonly failover: 'none' | 'lag-pending' | 'lagging' | 'copy-pending' | 'copied'
  /** The row on a lagging replica; `null`: no replica is available without the majority. */
  readonly replica: Row | null
  readonly majority: 'available' | 'unavailable' | 'recovered'
  /** How often the majority may still become unavailable. */
  readonly outages: number
  readonly is201Sent: boolean
  /** Whether the cache was invalidated after the link was stored. */
  readonly isInvalidated: boolean
  readonly changes: number
  readonly unconfirmed: number
  /** Ticks until the last change must be visible to all readers. */
  readonly ticksToSettle: number
  /** The status that each lookup must not return, and the number of changes before its request. */
  readonly wrong: Readonly<Record<string, readonly [status: string, changes: number]>>
  readonly problems: readonly string[]
}

/** The invariants, by the message that reports a violation. */
export const invariants = {
  notFound: 'a created link is not found',
  stale: 'a disabled link redirects after 5 s',
  early201: 'a 201 without a fault precedes the invalidation',
  notInvalidated: 'a created link is never invalidated in the cache',
} as const

const TICK_MS = 2500
/** Ticks until a change must be visible to all readers; longer than HIT_MS_MAX. */
const SETTLE_TICKS = 2
/** A lifetime longer than any scenario. */
const UNLIMITED_TICKS = 99

/** The state before the first step. */
export function initialState(given: Partial<CacheState>): CacheState {
  const isStored = given.row !== undefined && given.row !== 'none'
  return {
    row: 'none',
    cell: null,
    copy: null,
    now: 0,
    ticks: 3,
    readers: 0,
    flushes: 0,
    failover: 'none',
    replica: null,
    majority: 'available',
    outages: 0,
    is201Sent: isStored,
    isInvalidated: isStored,
    changes: 0,
    unconfirmed: 0,
    ticksToSettle: 0,
    wrong: {},
    problems: [],
    ...given,
  }
}

interface Effect {
  readonly state: CacheState
  readonly result: Json
}

/** The effect of one operation, and its result. */
export function applyCacheOp(state: CacheState, op: Op): Effect {
  const [name] = op
  const after = (state: CacheState, result: Json = null): Effect => ({ state, result })
  switch (name) {
    case 'get':
      return after(state, state.cell?.[0] ?? null)
    case 'fill lease': {
      const [, value, ms] = op as unknown as [string, string, number]
      return state.cell === null ? after(withCell(state, value, ms), true) : after(state, false)
    }
    case 'fill': {
      const [, from, value, ms] = op as unknown as [string, string, string, number]
      const isCurrent = state.cell?.[0] === from
      return isCurrent ? after(withCell(state, value, ms), true) : after(state, false)
    }
    case 'set': {
      const [, value, ms] = op as unknown as [string, string, number]
      return after({ ...withCell(state, value, ms), isInvalidated: state.row !== 'none' })
    }
    case 'invalidate':
      return after({ ...state, cell: null, isInvalidated: state.row !== 'none' })
    case 'find':
      return after(state, state.majority === 'unavailable' ? 'unavailable' : state.row)
    case 'replica':
      return after(state, state.replica ?? 'unavailable')
    default:
      return applyLocalOp(state, op)
  }
}

/** Events of the processes, and operations that only the invariants need. */
function applyLocalOp(state: CacheState, op: Op): Effect {
  const [name, first, second] = op as unknown as [string, string, string]
  const after = (state: CacheState, result: Json = null): Effect => ({ state, result })
  switch (name) {
    case 'received':
      return after(state, state.now * TICK_MS)
    case 'request':
      return after(onRequest(state, first), state.now * TICK_MS)
    case 'response':
      return after(onResponse(state, first, second))
    case 'insert':
      return after(state.row === 'none' ? { ...state, row: 'on' } : state)
    case '201': {
      const problems = state.isInvalidated
        ? state.problems
        : withProblem(state, invariants.early201)
      return after({ ...state, is201Sent: true, problems })
    }
    case 'change':
      return state.row === 'none' ? after(state, 'none') : after(change(state, first as Row), first)
    case 'confirmed':
      return after({ ...state, unconfirmed: state.unconfirmed - 1, ticksToSettle: SETTLE_TICKS })
    case 'pause':
      return after(tick(state))
    default:
      throw new Error(`the model has no operation ${name}`)
  }
}

function withCell(state: CacheState, value: string, ms: number): CacheState {
  const ticks = Math.ceil(ms / TICK_MS)
  return { ...state, cell: [value, ticks > 10 ? UNLIMITED_TICKS : ticks] }
}

function withProblem(state: CacheState, what: string): readonly string[] {
  return [...new Set([...state.problems, what])].sort()
}

function change(state: CacheState, row: Row): CacheState {
  return { ...state, row, changes: state.changes + 1, unconfirmed: state.unconfirmed + 1 }
}

/** Records the status that the lookup must not return, unless a change precedes its response. */
function onRequest(state: CacheState, reader: string): CacheState {
  const { row, majority, ticksToSettle, unconfirmed } = state
  if (
    unconfirmed > 0 ||
    majority === 'unavailable' ||
    (majority === 'recovered' && ticksToSettle > 0)
  )
    return state
  const isSettled =
    row === 'on' ? state.is201Sent && state.isInvalidated : row === 'off' && ticksToSettle === 0
  if (!isSettled) return state
  const wrong = { ...state.wrong, [reader]: [row === 'on' ? '404' : '302', state.changes] as const }
  return { ...state, wrong: Object.fromEntries(Object.entries(wrong).sort()) }
}

function onResponse(state: CacheState, reader: string, status: string): CacheState {
  const { [reader]: wrong, ...others } = state.wrong
  const next = { ...state, wrong: others, readers: state.readers - 1 }
  if (wrong?.[0] !== status || wrong[1] !== state.changes) return next
  return {
    ...next,
    problems: withProblem(state, status === '404' ? invariants.notFound : invariants.stale),
  }
}

function aged(cell: Cell): Cell {
  if (cell === null || cell[1] === UNLIMITED_TICKS) return cell
  return cell[1] > 1 ? [cell[0], cell[1] - 1] : null
}

function tick(state: CacheState): CacheState {
  return {
    ...state,
    cell: aged(state.cell),
    copy: aged(state.copy),
    now: state.now + 1,
    ticksToSettle: Math.max(0, state.ticksToSettle - 1),
    failover: state.failover === 'lagging' ? 'none' : state.failover, // less than a tick
  }
}

/** The events of time and faults. */
export function cacheEvents(state: CacheState): { label: string; state: CacheState }[] {
  const { cell, copy, failover, majority } = state
  if (state.readers === 0) return [] // no reader is left to observe it
  const events: { label: string; state: CacheState }[] = []
  const addEvent = (label: string, change: Partial<CacheState>) => {
    events.push({ label, state: { ...state, ...change } })
  }
  if (state.ticks > 0) addEvent('2.5 s pass', { ...tick(state), ticks: state.ticks - 1 })
  if (state.flushes > 0 && cell !== null) addEvent('cache flush', { cell: null, flushes: 0 })
  if (failover === 'lag-pending')
    addEvent('the cache replica lags', { copy: cell, failover: 'lagging' })
  if (failover === 'lagging') addEvent('failover', { cell: copy, copy: null, failover: 'none' })
  if (failover === 'copy-pending') addEvent('cache snapshot', { copy: cell, failover: 'copied' })
  if (failover === 'copied')
    addEvent('cache restored from the snapshot', { cell: copy, copy: null, failover: 'none' })
  const changes = state.changes + 1
  if (majority !== 'unavailable' && state.outages > 0) {
    const outages = state.outages - 1
    addEvent('the majority becomes unavailable', { majority: 'unavailable', outages, changes })
  }
  if (majority === 'unavailable')
    addEvent('the majority recovers', {
      majority: 'recovered',
      ticksToSettle: SETTLE_TICKS,
      changes,
    })
  return events
}

/** The invariants that `state` violates. */
export function brokenCaches(
  state: CacheState,
  run: { quiet: boolean; faults: number },
): readonly string[] {
  const broken = state.problems.filter((what) => what !== invariants.early201 || run.faults === 0)
  const isNeverInvalidated = run.quiet && state.is201Sent && !state.isInvalidated
  return isNeverInvalidated ? [...broken, invariants.notInvalidated] : broken
}
