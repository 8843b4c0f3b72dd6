// The schema version, and a migration on a fake cluster: its statements in order, and the lock with
// contention and faults. test/component/stores/cassandra-migrate.test.ts uses a real node.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import * as deadline from '../../resilience/deadline.ts'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import type { Cassandra } from './client.ts'
import type { Row } from './row.ts'
import * as schema from './schema.ts'

let nowMs: number
let pauses: (readonly [ms: number, signal: AbortSignal | undefined])[]
/** Called in each pause. */
let onPause: () => void

const pause: deadline.Pause = (ms, signal) => {
  pauses.push([ms, signal])
  onPause()
  return pauses.length > 20 ? Promise.reject(new Error('too many pauses')) : Promise.resolve()
}
jest.unstable_mockModule('../../resilience/deadline.ts', () => ({ ...deadline, pause }))
const { hasKeyspace, migrate, readSchemaVersion } = await import('./migrations.ts')

beforeEach(() => {
  nowMs = 1000
  pauses = []
  onPause = () => undefined
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
})
afterEach(() => {
  jest.restoreAllMocks()
})

/** A failure of one statement; it may have had its effect. */
interface Fault {
  readonly error: Error
  readonly isApplied?: boolean
}

/** Each statement, by its kind, its verb, the number of its values and its TTL. */
const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['scan SELECT 1', 'find table'],
  ['new-table-scan SELECT 0', 'read versions'], // of a kind whose rejections are not logged
  ['serial-read SELECT 0', 'read lock'],
  ['lwt INSERT 1 TTL 60', 'lock'],
  ['lwt UPDATE 2 TTL 60', 'renew'],
  ['lwt DELETE 1', 'release'],
  ['lwt INSERT 3', 'record'],
])

/** A cluster with the steps of `versions` applied, whose statements fail first with `faults`. */
function open(given: {
  readonly versions?: readonly number[]
  readonly holder?: string
  readonly tables?: readonly Row[]
  readonly faults?: Readonly<Record<string, readonly Fault[]>> | undefined
}) {
  const { versions = [1, 2, 3], tables = [{ table_name: 'schema_migrations' }] } = given
  const state = { holder: given.holder as unknown, versions: [...versions] }
  const calls: unknown[][] = []
  const setHolder = (isMatching: boolean, holder: unknown) => {
    if (isMatching) state.holder = holder
    return [{ '[applied]': isMatching }]
  }
  const effects: Record<string, (values: readonly unknown[]) => readonly Row[]> = {
    'find table': () => tables,
    'read versions': () => state.versions.map((version) => ({ version })),
    'read lock': () => [state.holder].filter(Boolean).map((holder) => ({ holder: [holder] })),
    lock: ([holder]) => setHolder(state.holder === undefined, holder),
    renew: ([holder, expected]) => setHolder(state.holder === expected, holder),
    release: ([expected]) => setHolder(state.holder === expected, undefined),
    record: ([version]) => [{ '[applied]': state.versions.push(Number(version)) > 0 }],
  }
  const faults = new Map(Object.entries(given.faults ?? {}).map(([key, each]) => [key, [...each]]))
  const run = (operation: string, values: readonly unknown[]) => {
    calls.push([operation, values])
    const fault = faults.get(operation)?.shift()
    const rows = fault?.isApplied === false ? [] : (effects[operation]?.(values) ?? [])
    return fault === undefined ? Promise.resolve(rows) : Promise.reject(fault.error)
  }
  const cassandra: Cassandra = {
    ready: Promise.resolve('up'),
    isUp: () => true,
    warmUp: () => undefined,
    executeOnEach: () => Promise.resolve([]),
    close: () => Promise.resolve(),
    execute(kind, cql, values = []) {
      const ttl = / TTL \d+/.exec(cql)?.[0] ?? ''
      const statement = `${kind} ${cql.split(' ', 1).join()} ${values.length}${ttl}`
      return run(OPERATIONS.get(statement) ?? cql, values)
    },
    changeSchema: (cql) => run('change', [cql]).then(() => undefined),
  }
  return { cassandra, state, calls, operations: () => calls.map(([operation]) => operation) }
}

const failed = (outcome: FailedOutcome) => new StoreError('no response', { outcome })
const defect = new TypeError('a defect')

function failure(code: number, message = 'failed'): StoreError {
  const cause = Object.assign(new Error(message), { name: 'ResponseError', code })
  return new StoreError('no', { outcome: 'not-done', cause })
}

test('readSchemaVersion() returns the newest version, or 0 if there is none', async () => {
  expect(await readSchemaVersion(open({ versions: [0, 2, 1] }).cassandra, 'k')).toBe(2)
  expect(await readSchemaVersion(open({ versions: [] }).cassandra, 'k')).toBe(0)
  const { cassandra, calls } = open({ tables: [] })
  expect(await readSchemaVersion(cassandra, 'k')).toBe(0)
  expect(calls).toEqual([['find table', ['k']]])
})

test.each([
  ['rejects the statement', failure(0x2200)],
  ['fails', failure(0x0000, 'java.lang.IllegalArgumentException: Unknown CF 8f407497')],
])('readSchemaVersion() returns 0 if a node %s while it creates the table', async (_, error) => {
  const { cassandra } = open({ faults: { 'read versions': [{ error }] } })
  expect(await readSchemaVersion(cassandra, 'k')).toBe(0)
})

test.each([
  failure(0x2100),
  failure(0x0000),
  new Error('a defect', { cause: failure(0x2200).cause }),
])('readSchemaVersion() throws every other error', async (error) => {
  const { cassandra } = open({ faults: { 'read versions': [{ error }] } })
  await expect(readSchemaVersion(cassandra, 'k')).rejects.toBe(error)
})

test('hasKeyspace() returns whether the keyspace is listed', async () => {
  const { cassandra, calls } = open({})
  expect(await hasKeyspace(cassandra, 'k')).toBe(true)
  expect(calls).toEqual([['find table', ['k']]])
  expect(await hasKeyspace(open({ tables: [] }).cassandra, 'k')).toBe(false)
})

const STEPS: readonly schema.Migration[] = [
  { version: 1, about: 'first', statements: ['CREATE KEYSPACE.a'] },
  { version: 2, about: 'second', statements: ['ALTER KEYSPACE.a KEYSPACE.b', 'DROP KEYSPACE.c'] },
  { version: 3, about: 'third', statements: ['CREATE KEYSPACE.d'] },
]

/** Migrates keyspace k to STEPS; `events` are the calls of the callbacks. */
function run(
  cluster: ReturnType<typeof open>,
  change: Partial<Parameters<typeof migrate>[1]> = {},
  steps: { readonly steps?: typeof STEPS } = { steps: STEPS },
) {
  const events: unknown[] = []
  const result = migrate(cluster.cassandra, {
    ...{ keyspace: 'k', signal: new AbortController().signal },
    onStep: ({ version }) => events.push(version),
    onWait: () => events.push('wait'),
    ...{ ...change, ...steps },
  })
  return { result, events }
}

/** The operations of every migration, before and after those of its steps. */
const BEFORE = ['change', 'lock', 'find table', 'read versions']
const AFTER = ['find table', 'read versions', 'release']

test('migrate() applies the missing steps in order, and renews the lock before each', async () => {
  const cluster = open({ versions: [1] })
  const { result } = run(cluster, { onStep: ({ version }) => cluster.calls.push([version]) })
  expect(await result).toEqual({ version: 3, applied: 2 })
  const holder: unknown = expect.stringMatching(/^[\da-f-]{36}$/)
  const renew = ['renew', [holder, holder]]
  expect(cluster.calls).toEqual([
    ['change', [schema.createMigrationsTable('k')]],
    ...[['lock', [holder]], ['find table', ['k']], ['read versions', []], [2]],
    ...[renew, ['change', ['ALTER k.a k.b']], renew, ['change', ['DROP k.c']]],
    ...[renew, ['record', [2, 'second', expect.any(Date)]], [3]],
    ...[renew, ['change', ['CREATE k.d']], renew, ['record', [3, 'third', expect.any(Date)]]],
    ...[
      ['find table', ['k']],
      ['read versions', []],
      ['release', [holder]],
    ],
  ])
})

test('migrate() of a newer schema changes nothing', async () => {
  const cluster = open({ versions: [1, 2, 3, 4] })
  const { result, events } = run(cluster)
  expect([await result, events]).toEqual([{ version: 4, applied: 0 }, []])
  expect(cluster.operations()).toEqual([...BEFORE, ...AFTER])
})

test('two concurrent runs of migrate() apply each step of the schema once', async () => {
  const cluster = open({ versions: [] })
  const runs = [run(cluster, {}, {}), run(cluster, {}, {})]
  const results = await Promise.all(runs.map(({ result }) => result))
  const versions = schema.migrations.map(({ version }) => version)
  expect(results.map(({ applied }) => applied)).toEqual([versions.length, 0])
  expect(runs.map(({ events }) => events)).toEqual([versions, ['wait']])
  expect(cluster.state).toEqual({ holder: undefined, versions })
})

test('migrate() waits while another process holds the lock, and reports it once', async () => {
  const cluster = open({ holder: 'another' })
  onPause = () => {
    if (pauses.length === 3) cluster.state.holder = undefined
  }
  const { signal } = new AbortController()
  const { result, events } = run(cluster, { signal })
  expect(await result).toEqual({ version: 3, applied: 0 })
  expect([events, pauses]).toEqual([['wait'], Array(3).fill([500, signal])])
  expect(cluster.operations().slice(1, 6)).toEqual([...Array<string>(4).fill('lock'), 'find table'])
})

const running = { name: 'StoreError', message: 'another migration is running', outcome: 'not-done' }

test('migrate() waits five minutes for the lock', async () => {
  const cluster = open({ holder: 'another' })
  onPause = () => (nowMs += 100_000)
  await expect(run(cluster).result).rejects.toMatchObject(running)
  expect(pauses).toHaveLength(4) // the fourth starts exactly at the deadline
  expect(cluster.operations()).toEqual(['change', ...Array<string>(5).fill('lock')])
  expect(cluster.state.holder).toBe('another')
})

test.each([0, 1])('migrate() stops waiting if the signal aborts: pauses %i', async (count) => {
  const aborting = new AbortController()
  onPause = () => {
    aborting.abort()
  }
  if (count === 0) aborting.abort()
  const { result, events } = run(open({ holder: 'another' }), { signal: aborting.signal })
  await expect(result).rejects.toMatchObject(running)
  expect([events, pauses.length]).toEqual([['wait'], count])
})

test('migrate() reads the lock if its acquisition has an unknown outcome', async () => {
  const error = failed('unknown')
  const held = open({ faults: { lock: [{ error }] } })
  const { result, events } = run(held)
  expect([await result, events]).toEqual([{ version: 3, applied: 0 }, []])
  expect(held.operations().slice(1, 4)).toEqual(['lock', 'read lock', 'find table'])
  const free = open({ faults: { lock: [{ error, isApplied: false }] } })
  await run(free).result
  expect(pauses).toHaveLength(1)
  expect(free.operations().slice(1, 5)).toEqual(['lock', 'read lock', 'lock', 'find table'])
})

test('migrate() reads the lock if its renewal has an unknown outcome', async () => {
  const cluster = open({ versions: [2], faults: { renew: [{ error: failed('unknown') }] } })
  expect(await run(cluster).result).toEqual({ version: 3, applied: 1 })
  const operations = ['renew', 'read lock', 'change', 'renew', 'record']
  expect(cluster.operations()).toEqual([...BEFORE, ...operations, ...AFTER])
})

test.each([
  ['another process holds the lock', 'another', undefined],
  ['the lock has expired', undefined, { renew: [{ error: failed('unknown') }] }],
])('migrate() stops if, at a renewal, %s', async (_, holder, faults) => {
  const cluster = open({ versions: [2], faults })
  const onStep = () => (cluster.state.holder = holder)
  await expect(run(cluster, { onStep }).result).rejects.toMatchObject({
    ...{ message: 'the migration lock was lost to another process', outcome: 'not-done' },
  })
  expect(cluster.operations().filter((operation) => operation === 'change')).toHaveLength(1)
  expect([cluster.operations().at(-1), cluster.state.holder]).toEqual(['release', holder])
})

test.each([failed('not-done'), defect])('migrate() throws an error of the lock', async (error) => {
  const cluster = open({ faults: { lock: [{ error, isApplied: false }] } })
  await expect(run(cluster).result).rejects.toBe(error)
  expect([cluster.operations(), pauses]).toEqual([['change', 'lock'], []])
})

test.each([
  ['renew', failed('not-done')],
  ['renew', defect],
  ['record', failed('unknown')],
])('migrate() releases the lock after a failure: %s', async (operation, error) => {
  const cluster = open({ versions: [2], faults: { [operation]: [{ error }] } })
  await expect(run(cluster).result).rejects.toBe(error)
  expect(cluster.operations().slice(-2)).toEqual([operation, 'release'])
  expect(cluster.state.holder).toBeUndefined()
})

test('migrate() ignores a StoreError of the release, but no other error', async () => {
  const error = failed('not-done')
  const result = { version: 3, applied: 0 }
  expect(await run(open({ faults: { release: [{ error }] } })).result).toEqual(result)
  const broken = open({ faults: { release: [{ error: defect }] } })
  await expect(run(broken).result).rejects.toBe(defect)
})
