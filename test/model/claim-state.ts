// What the stores of links and intents hold in the model, and what one call does to it. Mutants of
// the stores bend one effect each.
import type { Json, Op } from './replay.ts'

/** A link: who wrote it, where it points (`null` = erased), when it ends. */
export type LinkRow = readonly [writerId: string, longUrl: string | null, expiresAtMs: number]

/** An intent, with hashes cut short. */
export type IntentRow = readonly [
  body: string,
  code: string,
  writerId: string,
  createdAtMs: number,
  expiresAtMs: number,
]

/** What one client was answered. */
export type Told = readonly [
  client: string,
  kind: string,
  code: string,
  expiresAtMs: number,
  replayed: boolean,
]

/** A request of a client; `key` is its Idempotency-Key. */
export interface Client {
  readonly name: string
  readonly key?: string
  readonly alias?: string
  readonly body: string
}

/** Everything but the processes. */
export interface ClaimState {
  readonly links: Readonly<Record<string, LinkRow>>
  readonly intents: Readonly<Record<string, IntentRow>>
  readonly codes: readonly string[]
  readonly told: readonly Told[]
  /** Clients that began after a 201 for their key and body. */
  readonly late: readonly string[]
  /** How often an operator may yet delete a link, and all intents may yet end. */
  readonly erasures: number
  readonly expiries: number
}

/** Mutants of the stores. */
export interface BentStores {
  readonly erasureForgetsWriter?: boolean
  readonly moveWithoutComparing?: boolean
}

interface Effect {
  readonly state: ClaimState
  readonly answer: Json
}

/** The effect of one call. */
export function applyClaimOp(
  state: ClaimState,
  op: Op,
  given: BentStores & { clients: readonly Client[] },
): Effect {
  const [name, at] = op as unknown as [string, string]
  switch (name) {
    case 'claim':
      return claim(state, at, op.slice(2) as unknown as LinkRow)
    case 'link?':
      return { state, answer: state.links[at] ?? null }
    case 'intend':
      return intend(state, at, op.slice(2) as unknown as IntentRow)
    case 'intent?':
      return { state, answer: state.intents[at] ?? null }
    case 'move':
      return move(state, op as unknown as MoveOp, given.moveWithoutComparing ?? false)
    case 'take':
      return { state: { ...state, codes: state.codes.slice(1) }, answer: state.codes[0] ?? null }
    case 'begin':
      return { state: begin(state, at, given.clients), answer: null }
    default:
      throw new Error(`the model has no ${name}`)
  }
}

function claim(state: ClaimState, code: string, row: LinkRow): Effect {
  const stood = state.links[code]
  if (stood !== undefined) return { state, answer: [stood[0], false] }
  return { state: { ...state, links: withRow(state.links, code, row) }, answer: [row[0], true] }
}

function intend(state: ClaimState, key: string, row: IntentRow): Effect {
  const stood = state.intents[key]
  if (stood !== undefined) return { state, answer: stood }
  return { state: { ...state, intents: withRow(state.intents, key, row) }, answer: row }
}

type MoveOp = readonly ['move', key: string, to: string, from: string, writerId: string]

function move(state: ClaimState, op: MoveOp, always: boolean): Effect {
  const [, key, to, from, writerId] = op
  const stood = state.intents[key]
  const isSame = stood?.[1] === from && stood[2] === writerId
  if (stood === undefined || !(isSame || always)) return { state, answer: stood ?? null }
  const row: IntentRow = [stood[0], to, stood[2], stood[3], stood[4]]
  return { state: { ...state, intents: { ...state.intents, [key]: row } }, answer: row }
}

/** In the order of their keys, so that equal states look equal. */
function withRow<T>(rows: Readonly<Record<string, T>>, key: string, row: T): Record<string, T> {
  const entries = Object.entries({ ...rows, [key]: row })
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function begin(state: ClaimState, name: string, clients: readonly Client[]): ClaimState {
  const own = clients.find((client) => client.name === name)
  const isRepeated = state.told.some(([by, kind]) => {
    const { key, body, alias } = clients.find((client) => client.name === by) ?? {}
    const same = key !== undefined && key === own?.key && body === own.body && alias === own.alias
    return kind === 'created' && same
  })
  return isRepeated ? { ...state, late: [...state.late, name].sort() } : state
}

/** What operators and time may do. */
export function claimEvents(
  state: ClaimState,
  bent: BentStores,
): { label: string; state: ClaimState }[] {
  const events: { label: string; state: ClaimState }[] = []
  const codes = state.erasures === 0 ? [] : Object.entries(state.links)
  for (const [code, [writerId, , expiresAtMs]] of codes) {
    const erased: LinkRow = [bent.erasureForgetsWriter === true ? '' : writerId, null, expiresAtMs]
    const links = { ...state.links, [code]: erased }
    events.push({
      label: `an operator deletes ${code}`,
      state: { ...state, links, erasures: state.erasures - 1 },
    })
  }
  if (state.expiries > 0) {
    const ended = { ...state, intents: {}, expiries: state.expiries - 1 }
    events.push({ label: 'every intent ends', state: ended })
  }
  return events
}
