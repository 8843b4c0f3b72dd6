// Operators that change one link: processes that run the real Cassandra link store over a model of
// its row. A conditional write is applied immediately, after its timeout, or never.
import type { Link } from '../../src/links/link.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import type { CassandraSession } from '../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../src/stores/cassandra/link-store.ts'
import type { Row } from '../../src/stores/cassandra/row.ts'
import type { Model } from './explore.ts'
import type { Perform, Json, Op, Process } from './replay.ts'

/** What an operator requests. */
type Operation = 'disable' | 'enable' | 'erase'

const afterwards = { disable: 'disabled', enable: 'enabled', erase: 'erased' } as const

/** The row, and the progress of the operators. */
export interface ChangeState {
  readonly disabledAt: number | null
  readonly deletedAt: number | null
  readonly lastChange: string | null
  /** Operators that sent their request, each with those that had completed before. */
  readonly requests: readonly (readonly [operator: string, before: readonly string[]])[]
  /** Operators that received a response, with any result. */
  readonly completed: readonly string[]
  /** Operators that had completed before the request of a confirmed change. */
  readonly superseded: readonly string[]
  readonly isConfirmed: boolean
  readonly problems: readonly string[]
}

/** The options of a scenario, except its faults. */
export interface ChangeSetup {
  readonly changes: readonly Operation[]
  readonly isDisabled?: boolean
  /** Whether the store stays unavailable to an operator after a timeout, so that it aborts. */
  readonly aborts?: boolean
  readonly mutation?: ChangeMutation
}

/** Mutants. */
interface ChangeMutation {
  /** Writes do not compare the previous change id. */
  readonly ignoresChangeId?: boolean
  /** A change to the current state is not written. */
  readonly skipsUnchanged?: boolean
  /** All changes have the same change id. */
  readonly reusesChangeId?: boolean
}

/** The invariant, by the message that reports a violation. */
export const reverted = 'an aborted or earlier change reverted a confirmed change'

/** The model and processes of a scenario. */
export function changeScenario(setup: ChangeSetup): {
  model: Model<ChangeState>
  processes: Process[]
} {
  const { changes, isDisabled = false, mutation = {} } = setup
  const initial: ChangeState = {
    disabledAt: isDisabled ? 1 : null,
    deletedAt: null,
    lastChange: null,
    requests: [],
    completed: [],
    superseded: [],
    isConfirmed: false,
    problems: [],
  }
  const operations = new Map(changes.map((operation, i) => [nameOf(operation, i), operation]))
  const model: Model<ChangeState> = {
    initial,
    apply: (state, op) => applyChangeOp(state, op, mutation),
    finish: (state, _, outcome) =>
      outcome === 'done'
        ? state
        : { ...state, problems: [...state.problems, String(outcome)].sort() },
    broken: (state) => brokenChanges(state, operations),
  }
  const processes = changes.map((operation, i) =>
    operatorOf(nameOf(operation, i), { operation, at: 10 + i, setup }),
  )
  return { model, processes }
}

function nameOf(operation: Operation, i: number): string {
  return `${operation} ${String(i)}`
}

function operatorOf(
  name: string,
  { operation, at, setup }: { operation: Operation; at: number; setup: ChangeSetup },
): Process {
  return {
    name,
    async run(perform) {
      const links = createCassandraLinkStore(sessionOf(perform, setup), {
        newChangeId: () => (setup.mutation?.reusesChangeId === true ? 'operator' : name),
        pause: () => Promise.resolve(),
        monotonicMs: () => 0,
      })
      await perform('local', ['request', name])
      const change = (): Promise<Link | undefined> => {
        if (operation === 'erase') return links.erase({ code: 'code', deletedAtMs: at })
        return links.setDisabled({
          code: 'code',
          disabledAtMs: operation === 'disable' ? at : null,
        })
      }
      let isDone: boolean
      try {
        const link = await change()
        isDone = operation === 'erase' || link?.deletedAtMs === null // else it was already erased
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        isDone = false
      }
      await perform('now', [isDone ? 'confirmed' : 'aborted', name])
      return 'done'
    },
  }
}

/** A session that maps Cassandra's statements to operations on the model. */
function sessionOf(perform: Perform, { aborts = false }: ChangeSetup): CassandraSession {
  let isUnavailable = false
  const run = async (kind: 'read' | 'write', op: Op) => {
    if (isUnavailable) throw new StoreError('unavailable', { outcome: 'not-done' })
    try {
      return await perform(kind, op)
    } catch (error) {
      isUnavailable = aborts
      throw error
    }
  }
  return {
    warmUp: () => undefined,
    async execute(kind, cql, values = []) {
      if (kind === 'serial-read') return [rowOf(await run('read', ['read']))]
      const given = values.map(plain)
      const isErasure = cql.includes('long_url = null')
      const [at = null, id = null] = isErasure ? given : given.slice(1)
      const op = [isErasure ? 'erase' : 'set', at, id, ...given.slice(-2)] as const
      return [{ '[applied]': await run('write', op) }]
    },
  }
}

function plain(value: unknown): Json {
  if (value instanceof Date) return value.getTime()
  return value === null || value === undefined ? null : (value as string)
}

function rowOf(result: Json): Row {
  const [disabledAt, deletedAt, lastChange] = result as [
    number | null,
    number | null,
    string | null,
  ]
  const time = (ms: number | null) => (ms === null ? null : new Date(ms))
  const uuid = (text: string | null) => (text === null ? null : { toString: () => text })
  return {
    short_code: 'code',
    long_url: deletedAt === null ? 'https://x.example/' : null,
    created_at: new Date(0),
    writer_id: uuid('w'),
    disabled_at: time(disabledAt),
    deleted_at: time(deletedAt),
    change_id: uuid(lastChange),
    ttl_seconds: null,
  }
}

interface Effect {
  readonly state: ChangeState
  readonly result: Json
}

function applyChangeOp(state: ChangeState, op: Op, mutation: ChangeMutation): Effect {
  const [name] = op
  switch (name) {
    case 'read':
      return { state, result: [state.disabledAt, state.deletedAt, state.lastChange] }
    case 'set':
    case 'erase':
      return writeRow(state, op, mutation)
    default:
      return { state: recordOperator(state, op), result: null }
  }
}

/** A conditional write. */
function writeRow(state: ChangeState, op: Op, mutation: ChangeMutation): Effect {
  const [name, at, id, disabledAt, lastChange] = op as unknown as [
    string,
    number | null,
    string,
    number | null,
    string | null,
  ]
  const isLast = mutation.ignoresChangeId === true || state.lastChange === lastChange
  if (state.deletedAt !== null || state.disabledAt !== disabledAt || !isLast) {
    return { state, result: false }
  }
  if (name === 'erase') return { state: { ...state, deletedAt: at, lastChange: id }, result: true }
  const isSame = at === state.disabledAt && mutation.skipsUnchanged === true
  const row = { disabledAt: at, lastChange: isSame ? state.lastChange : id }
  return { state: { ...state, ...row }, result: true }
}

/** Records the requests of operators and their results. */
function recordOperator(state: ChangeState, op: Op): ChangeState {
  const [name, operator] = op as unknown as [string, string]
  if (name === 'request') {
    // The completed operators are superseded when this change is confirmed.
    return { ...state, requests: [...state.requests, [operator, state.completed] as const].sort() }
  }
  const completed = [...state.completed, operator].sort()
  if (name === 'aborted') return { ...state, completed }
  if (name !== 'confirmed') throw new Error(`the model has no operation ${name}`)
  const before = state.requests.find(([one]) => one === operator)?.[1] ?? []
  const superseded = [...new Set([...state.superseded, ...before])].sort()
  return { ...state, completed, superseded, isConfirmed: true }
}

/** The invariants that `state` violates. */
function brokenChanges(
  state: ChangeState,
  operations: ReadonlyMap<string, Operation>,
): readonly string[] {
  const { requests, superseded, isConfirmed, deletedAt, disabledAt } = state
  const enabledOrDisabled = disabledAt === null ? 'enabled' : 'disabled'
  const current = deletedAt === null ? enabledOrDisabled : 'erased'
  const resultsIn = (operator: string) =>
    afterwards[operations.get(operator) ?? 'enable'] === current
  const isExplained = requests.some(
    ([operator]) => !superseded.includes(operator) && resultsIn(operator),
  )
  return !isConfirmed || isExplained ? state.problems : [...state.problems, reverted]
}
