// Operators that change one link: processes that run the real changes of Cassandra's store over a
// model of its row: conditional writes that are applied at once, late, or never.
import type { Link } from '../../src/links/link.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import type { CassandraSession } from '../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../src/stores/cassandra/link-store.ts'
import type { Row } from '../../src/stores/cassandra/row.ts'
import type { Model } from './explore.ts'
import type { Ask, Json, Op, Process } from './replay.ts'

/** What an operator asks for. */
type Wanted = 'disable' | 'enable' | 'erase'

const afterwards = { disable: 'disabled', enable: 'enabled', erase: 'erased' } as const

/** The row, and who is or was at work on it. */
export interface ChangeState {
  readonly disabledAt: number | null
  readonly deletedAt: number | null
  readonly lastChange: string | null
  /** Operators who have asked, each with those who had been answered before. */
  readonly asked: readonly (readonly [who: string, before: readonly string[]])[]
  /** Operators who have been answered, whatever they were told. */
  readonly ended: readonly string[]
  /** Those who had been answered before another one asked that was told to be done. */
  readonly over: readonly string[]
  readonly isTold: boolean
  readonly ill: readonly string[]
}

/** Everything that can be chosen of a scenario but its faults. */
export interface ChangeSetup {
  readonly changes: readonly Wanted[]
  readonly isDisabled?: boolean
  /** Whether the store stays away from who lost an answer of it, until it is given up. */
  readonly givesUp?: boolean
  readonly bent?: BentChange
}

/** Mutants. */
interface BentChange {
  /** Of the row, writes do not compare the change before them. */
  readonly comparesNoChange?: boolean
  /** A link that is as it shall be is not written. */
  readonly writesNoSame?: boolean
  /** Who changes has one name for all its changes. */
  readonly namesItself?: boolean
}

/** The promise. */
export const undone =
  'a change that was given up, or done before, undid one that was told to be done'

/** The model and processes of a scenario. */
export function changeScenario(setup: ChangeSetup): {
  model: Model<ChangeState>
  processes: Process[]
} {
  const { changes, isDisabled = false, bent = {} } = setup
  const initial: ChangeState = {
    disabledAt: isDisabled ? 1 : null,
    deletedAt: null,
    lastChange: null,
    asked: [],
    ended: [],
    over: [],
    isTold: false,
    ill: [],
  }
  const wants = new Map(changes.map((want, i) => [nameOf(want, i), want]))
  const model: Model<ChangeState> = {
    initial,
    apply: (state, op) => applyChangeOp(state, op, bent),
    finish: (state, _, outcome) =>
      outcome === 'done' ? state : { ...state, ill: [...state.ill, String(outcome)].sort() },
    broken: (state) => brokenChanges(state, wants),
  }
  const processes = changes.map((want, i) =>
    operatorOf(nameOf(want, i), { want, at: 10 + i, setup }),
  )
  return { model, processes }
}

function nameOf(want: Wanted, i: number): string {
  return `${want} ${String(i)}`
}

function operatorOf(
  name: string,
  { want, at, setup }: { want: Wanted; at: number; setup: ChangeSetup },
): Process {
  return {
    name,
    async run(ask) {
      const links = createCassandraLinkStore(sessionOf(ask, setup), {
        newChangeId: () => (setup.bent?.namesItself === true ? 'operator' : name),
        pause: () => Promise.resolve(),
      })
      await ask('local', ['asks', name])
      const change = (): Promise<Link | undefined> => {
        if (want === 'erase') return links.erase({ code: 'code', deletedAtMs: at })
        return links.setDisabled({ code: 'code', disabledAtMs: want === 'disable' ? at : null })
      }
      let isDone: boolean
      try {
        const link = await change()
        isDone = want === 'erase' || link?.deletedAtMs === null // else it was erased before
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        isDone = false
      }
      await ask('now', [isDone ? 'told' : 'given up', name])
      return 'done'
    },
  }
}

/** Cassandra's statements as calls of the model. */
function sessionOf(ask: Ask, { givesUp = false }: ChangeSetup): CassandraSession {
  let isAway = false
  const run = async (kind: 'read' | 'write', op: Op) => {
    if (isAway) throw new StoreError('away', { outcome: 'not-done' })
    try {
      return await ask(kind, op)
    } catch (error) {
      isAway = givesUp
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

function rowOf(answer: Json): Row {
  const [disabledAt, deletedAt, lastChange] = answer as [
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
  readonly answer: Json
}

function applyChangeOp(state: ChangeState, op: Op, bent: BentChange): Effect {
  const [name] = op
  switch (name) {
    case 'read':
      return { state, answer: [state.disabledAt, state.deletedAt, state.lastChange] }
    case 'set':
    case 'erase':
      return writeRow(state, op, bent)
    default:
      return { state: noteOperator(state, op), answer: null }
  }
}

/** A conditional write. */
function writeRow(state: ChangeState, op: Op, bent: BentChange): Effect {
  const [name, at, id, disabledAt, lastChange] = op as unknown as [
    string,
    number | null,
    string,
    number | null,
    string | null,
  ]
  const isLast = bent.comparesNoChange === true || state.lastChange === lastChange
  if (state.deletedAt !== null || state.disabledAt !== disabledAt || !isLast) {
    return { state, answer: false }
  }
  if (name === 'erase') return { state: { ...state, deletedAt: at, lastChange: id }, answer: true }
  const isSame = at === state.disabledAt && bent.writesNoSame === true
  const row = { disabledAt: at, lastChange: isSame ? state.lastChange : id }
  return { state: { ...state, ...row }, answer: true }
}

/** Notes who asks, and how each is answered. */
function noteOperator(state: ChangeState, op: Op): ChangeState {
  const [name, who] = op as unknown as [string, string]
  if (name === 'asks') {
    // Who had been answered before is over, once this one is told that it is done.
    return { ...state, asked: [...state.asked, [who, state.ended] as const].sort() }
  }
  const ended = [...state.ended, who].sort()
  if (name === 'given up') return { ...state, ended }
  if (name !== 'told') throw new Error(`the model has no ${name}`)
  const before = state.asked.find(([one]) => one === who)?.[1] ?? []
  const over = [...new Set([...state.over, ...before])].sort()
  return { ...state, ended, over, isTold: true }
}

/** The promises that `state` breaks. */
function brokenChanges(state: ChangeState, wants: ReadonlyMap<string, Wanted>): readonly string[] {
  const { asked, over, isTold, deletedAt, disabledAt } = state
  const alive = disabledAt === null ? 'enabled' : 'disabled'
  const stands = deletedAt === null ? alive : 'erased'
  const isOf = (who: string) => afterwards[wants.get(who) ?? 'enable'] === stands
  const isExplained = asked.some(([who]) => !over.includes(who) && isOf(who))
  return !isTold || isExplained ? state.ill : [...state.ill, undone]
}
