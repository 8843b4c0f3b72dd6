// The state of the link and intent stores in the model, and the effect of each operation. Each
// mutant of the stores changes one effect.
import type { Json, Op } from './replay.ts'

/** A link: its writer, its target (`null` = erased), its expiry. */
export type LinkRow = readonly [writerId: string, longUrl: string | null, expiresAtMs: number]

/** An intent, with truncated hashes. */
export type IntentRow = readonly [
  body: string,
  code: string,
  writerId: string,
  createdAtMs: number,
  expiresAtMs: number,
]

/** The result that one client received. */
export type ClientResult = readonly [
  client: string,
  kind: string,
  code: string,
  expiresAtMs: number,
  replayed: boolean,
]

/** A client's request; `key` is its Idempotency-Key. */
export interface Client {
  readonly name: string
  readonly key?: string
  readonly alias?: string
  readonly body: string
}

/** The state of the stores, the events and the results. */
export interface ClaimState {
  readonly links: Readonly<Record<string, LinkRow>>
  readonly intents: Readonly<Record<string, IntentRow>>
  readonly codes: readonly string[]
  readonly results: readonly ClientResult[]
  /** Clients that sent their request after a 201 for their key and body. */
  readonly retries: readonly string[]
  /** How often an operator may still delete a link, and all intents may still expire. */
  readonly erasures: number
  readonly expiries: number
}

/** Mutants of the stores. */
export interface StoreMutation {
  readonly erasureClearsWriter?: boolean
  readonly moveWithoutComparing?: boolean
}

interface Effect {
  readonly state: ClaimState
  readonly result: Json
}

/** The effect of one operation, and its result. */
export function applyClaimOp(
  state: ClaimState,
  op: Op,
  given: StoreMutation & { clients: readonly Client[] },
): Effect {
  const [name, at] = op as unknown as [string, string]
  switch (name) {
    case 'claim':
      return claim(state, at, op.slice(2) as unknown as LinkRow)
    case 'read link':
      return { state, result: state.links[at] ?? null }
    case 'insert intent':
      return insertIntent(state, at, op.slice(2) as unknown as IntentRow)
    case 'read intent':
      return { state, result: state.intents[at] ?? null }
    case 'move intent':
      return moveIntent(state, op as unknown as MoveOp, given.moveWithoutComparing ?? false)
    case 'take code':
      return { state: { ...state, codes: state.codes.slice(1) }, result: state.codes[0] ?? null }
    case 'request':
      return { state: recordRequest(state, at, given.clients), result: null }
    default:
      throw new Error(`the model has no operation ${name}`)
  }
}

function claim(state: ClaimState, code: string, row: LinkRow): Effect {
  const existing = state.links[code]
  if (existing !== undefined) return { state, result: [existing[0], false] }
  return { state: { ...state, links: withRow(state.links, code, row) }, result: [row[0], true] }
}

function insertIntent(state: ClaimState, key: string, row: IntentRow): Effect {
  const existing = state.intents[key]
  if (existing !== undefined) return { state, result: existing }
  return { state: { ...state, intents: withRow(state.intents, key, row) }, result: row }
}

type MoveOp = readonly ['move intent', key: string, to: string, from: string, writerId: string]

function moveIntent(state: ClaimState, op: MoveOp, always: boolean): Effect {
  const [, key, to, from, writerId] = op
  const existing = state.intents[key]
  const isSame = existing?.[1] === from && existing[2] === writerId
  if (existing === undefined || !(isSame || always)) return { state, result: existing ?? null }
  const row: IntentRow = [existing[0], to, existing[2], existing[3], existing[4]]
  return { state: { ...state, intents: { ...state.intents, [key]: row } }, result: row }
}

/** Sorts the rows by key, so that equal states have equal representations. */
function withRow<T>(rows: Readonly<Record<string, T>>, key: string, row: T): Record<string, T> {
  const entries = Object.entries({ ...rows, [key]: row })
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function recordRequest(state: ClaimState, name: string, clients: readonly Client[]): ClaimState {
  const own = clients.find((client) => client.name === name)
  const isRetry = state.results.some(([by, kind]) => {
    const { key, body, alias } = clients.find((client) => client.name === by) ?? {}
    const same = key !== undefined && key === own?.key && body === own.body && alias === own.alias
    return kind === 'created' && same
  })
  return isRetry ? { ...state, retries: [...state.retries, name].sort() } : state
}

/** The events of operators and time. */
export function claimEvents(
  state: ClaimState,
  mutation: StoreMutation,
): { label: string; state: ClaimState }[] {
  const events: { label: string; state: ClaimState }[] = []
  const codes = state.erasures === 0 ? [] : Object.entries(state.links)
  for (const [code, [writerId, , expiresAtMs]] of codes) {
    const erased: LinkRow = [
      mutation.erasureClearsWriter === true ? '' : writerId,
      null,
      expiresAtMs,
    ]
    const links = { ...state.links, [code]: erased }
    events.push({
      label: `an operator deletes ${code}`,
      state: { ...state, links, erasures: state.erasures - 1 },
    })
  }
  if (state.expiries > 0) {
    const expired = { ...state, intents: {}, expiries: state.expiries - 1 }
    events.push({ label: 'all intents expire', state: expired })
  }
  return events
}
