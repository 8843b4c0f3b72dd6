// What the store and the shared cache hold of one code in the model, what one command does to it,
// what time and bad luck may do, and which answers break a promise. One tick of the clock is 2.5 s.
import type { Json, Op } from './replay.ts'

/** What the cache holds, and for how many ticks yet. */
type Cell = readonly [value: string, ticks: number] | null

/** What the store says of the link: absent, active, disabled. */
export type Row = 'none' | 'on' | 'off'

/** Everything but the processes. */
export interface CacheState {
  readonly row: Row
  readonly cell: Cell
  /** What a failover or a restart brings back. */
  readonly copy: Cell
  readonly now: number
  /** How many may yet pass. */
  readonly ticks: number
  /** Look-ups that are not answered yet. */
  readonly readers: number
  readonly flushes: number
  readonly failover: 'none' | 'lag-to-come' | 'lagging' | 'copy-to-come' | 'copied'
  /** What a lagging replica says; `null`: none answers while a majority is away. */
  readonly replica: Row | null
  readonly majority: 'there' | 'away' | 'back'
  /** How often a majority may yet go away. */
  readonly absences: number
  readonly isSaid: boolean
  /** Whether the cache was told since the link is there. */
  readonly isForgotten: boolean
  readonly changes: number
  readonly unconfirmed: number
  /** Ticks until the last change must be seen everywhere. */
  readonly calm: number
  /** What a look-up must not be answered, and after how many changes it came. */
  readonly wrong: Readonly<Record<string, readonly [status: string, changes: number]>>
  readonly ill: readonly string[]
}

/** The promises. */
export const promises = {
  fresh: 'a fresh link is not there',
  gone: 'a disabled link redirects after 5 s',
  early: 'a 201 without a fault came before the cache was told',
  never: 'the cache was never told of a link',
} as const

const TICK_MS = 2500
/** A change must be seen everywhere after so many ticks, and memory lives for less: HIT_MS_MAX. */
const CALM = 2
/** Longer than any scenario. */
const FOR_EVER = 99

/** A state before anything has happened. */
export function initialState(given: Partial<CacheState>): CacheState {
  const isThere = given.row !== undefined && given.row !== 'none'
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
    majority: 'there',
    absences: 0,
    isSaid: isThere,
    isForgotten: isThere,
    changes: 0,
    unconfirmed: 0,
    calm: 0,
    wrong: {},
    ill: [],
    ...given,
  }
}

interface Effect {
  readonly state: CacheState
  readonly answer: Json
}

/** The effect of one command, and its answer. */
export function applyCacheOp(state: CacheState, op: Op): Effect {
  const [name] = op
  const after = (state: CacheState, answer: Json = null): Effect => ({ state, answer })
  switch (name) {
    case 'get':
      return after(state, state.cell?.[0] ?? null)
    case 'put': {
      const [, value, ms] = op as unknown as [string, string, number]
      return state.cell === null ? after(withCell(state, value, ms), true) : after(state, false)
    }
    case 'replace': {
      const [, from, value, ms] = op as unknown as [string, string, string, number]
      const stands = state.cell?.[0] === from
      return stands ? after(withCell(state, value, ms), true) : after(state, false)
    }
    case 'set': {
      const [, value, ms] = op as unknown as [string, string, number]
      return after({ ...withCell(state, value, ms), isForgotten: state.row !== 'none' })
    }
    case 'del':
      return after({ ...state, cell: null, isForgotten: state.row !== 'none' })
    case 'find':
      return after(state, state.majority === 'away' ? 'away' : state.row)
    case 'replica':
      return after(state, state.replica ?? 'away')
    default:
      return applyLocalOp(state, op)
  }
}

/** Moments of the processes, and what only the promises need. */
function applyLocalOp(state: CacheState, op: Op): Effect {
  const [name, first, second] = op as unknown as [string, string, string]
  const after = (state: CacheState, answer: Json = null): Effect => ({ state, answer })
  switch (name) {
    case 'landed':
      return after(state, state.now * TICK_MS)
    case 'arrive':
      return after(arrive(state, first), state.now * TICK_MS)
    case 'answer':
      return after(judge(state, first, second))
    case 'insert':
      return after(state.row === 'none' ? { ...state, row: 'on' } : state)
    case '201': {
      const ill = state.isForgotten ? state.ill : withIll(state, promises.early)
      return after({ ...state, isSaid: true, ill })
    }
    case 'change':
      return state.row === 'none' ? after(state, 'none') : after(change(state, first as Row), first)
    case 'confirmed':
      return after({ ...state, unconfirmed: state.unconfirmed - 1, calm: CALM })
    case 'pause':
      return after(tick(state))
    default:
      throw new Error(`the model has no ${name}`)
  }
}

function withCell(state: CacheState, value: string, ms: number): CacheState {
  const ticks = Math.ceil(ms / TICK_MS)
  return { ...state, cell: [value, ticks > 10 ? FOR_EVER : ticks] }
}

function withIll(state: CacheState, what: string): readonly string[] {
  return [...new Set([...state.ill, what])].sort()
}

function change(state: CacheState, row: Row): CacheState {
  return { ...state, row, changes: state.changes + 1, unconfirmed: state.unconfirmed + 1 }
}

/** What must not be said to who comes now, if nothing changes until it is said. */
function arrive(state: CacheState, reader: string): CacheState {
  const { row, majority, calm, unconfirmed } = state
  if (unconfirmed > 0 || majority === 'away' || (majority === 'back' && calm > 0)) return state
  const isDue = row === 'on' ? state.isSaid && state.isForgotten : row === 'off' && calm === 0
  if (!isDue) return state
  const wrong = { ...state.wrong, [reader]: [row === 'on' ? '404' : '302', state.changes] as const }
  return { ...state, wrong: Object.fromEntries(Object.entries(wrong).sort()) }
}

function judge(state: CacheState, reader: string, status: string): CacheState {
  const { [reader]: wrong, ...others } = state.wrong
  const next = { ...state, wrong: others, readers: state.readers - 1 }
  if (wrong?.[0] !== status || wrong[1] !== state.changes) return next
  return { ...next, ill: withIll(state, status === '404' ? promises.fresh : promises.gone) }
}

function older(cell: Cell): Cell {
  if (cell === null || cell[1] === FOR_EVER) return cell
  return cell[1] > 1 ? [cell[0], cell[1] - 1] : null
}

function tick(state: CacheState): CacheState {
  return {
    ...state,
    cell: older(state.cell),
    copy: older(state.copy),
    now: state.now + 1,
    calm: Math.max(0, state.calm - 1),
    failover: state.failover === 'lagging' ? 'none' : state.failover, // it lags for less than that
  }
}

/** What time and bad luck may do. */
export function cacheEvents(state: CacheState): { label: string; state: CacheState }[] {
  const { cell, copy, failover, majority } = state
  if (state.readers === 0) return [] // nobody would see it
  const events: { label: string; state: CacheState }[] = []
  const may = (label: string, change: Partial<CacheState>) => {
    events.push({ label, state: { ...state, ...change } })
  }
  if (state.ticks > 0) may('2.5 s pass', { ...tick(state), ticks: state.ticks - 1 })
  if (state.flushes > 0 && cell !== null) may('the cache is flushed', { cell: null, flushes: 0 })
  if (failover === 'lag-to-come') may('its replica lags', { copy: cell, failover: 'lagging' })
  if (failover === 'lagging') may('failover', { cell: copy, copy: null, failover: 'none' })
  if (failover === 'copy-to-come') may('a copy is made', { copy: cell, failover: 'copied' })
  if (failover === 'copied')
    may('the copy comes back', { cell: copy, copy: null, failover: 'none' })
  const changes = state.changes + 1
  if (majority !== 'away' && state.absences > 0) {
    const absences = state.absences - 1
    may('the majority goes away', { majority: 'away', absences, changes })
  }
  if (majority === 'away') may('the majority is back', { majority: 'back', calm: CALM, changes })
  return events
}

/** The promises that `state` breaks. */
export function brokenCaches(
  state: CacheState,
  seen: { quiet: boolean; faults: number },
): readonly string[] {
  const broken = state.ill.filter((what) => what !== promises.early || seen.faults === 0)
  const isNever = seen.quiet && state.isSaid && !state.isForgotten
  return isNever ? [...broken, promises.never] : broken
}
