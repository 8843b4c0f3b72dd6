// Pools of codes on a fake session that returns prepared results: faults and lost races, which a
// real node has only by chance. test/contract/code-store.ts has the requirements of every store.
import { beforeEach, expect, jest, test } from '@jest/globals'
import { GENERATED_LENGTH } from '../../codes/base62.ts'
import { POOL_NUMBERS } from '../../codes/block.ts'
import { OperatorError } from '../../process/role.ts'
import * as deadline from '../../resilience/deadline.ts'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import type { Row } from './row.ts'

let pauses: number

const pause = () => {
  pauses++
  return Promise.resolve()
}
jest.unstable_mockModule('../../resilience/deadline.ts', () => ({ ...deadline, pause }))
const { createCassandraCodeStore, readPools, storeTargetLevel, takeNumber } =
  await import('./code-store.ts')

beforeEach(() => {
  pauses = 0
})

type Result = readonly Row[] | Error

/** A session that returns `results` in turn, then the last one for ever; and the statements. */
function open(...results: readonly Result[]) {
  /** Kind, verb and table of each statement. */
  const statements: string[] = []
  const values: (readonly unknown[] | undefined)[] = []
  const warmedUp: string[] = []
  const nameOf = (cql: string) => `${cql.split(' ', 1).join()} ${/code_\w+/.exec(cql)?.[0] ?? ''}`
  const session: CassandraSession = {
    warmUp: (given) => warmedUp.push(...given.map(nameOf)),
    execute(kind, cql, given) {
      const result = results[Math.min(statements.length, results.length - 1)] ?? []
      statements.push(`${kind} ${nameOf(cql)}`)
      values.push(given)
      if (values.length > 100) throw new Error('too many statements')
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result)
    },
  }
  return { session, store: createCassandraCodeStore(session), statements, values, warmedUp }
}

const READ_SERIAL = 'serial-read SELECT code_pools'
const READ_MAJORITY = 'majority-read SELECT code_pools'
const UPDATE = 'lwt UPDATE code_pools'
const READ_NUMBERS = 'scan SELECT code_pool_numbers'
const TAKE_NUMBER = 'lwt INSERT code_pool_numbers'
const INSERT_POOL = 'lwt INSERT code_pools'

const WRITER = 'd9428888-122b-11e1-b85c-61cd3cbb3210'
const APPLIED = [{ '[applied]': true }]
const NOT_APPLIED = [{ '[applied]': false }]
const failed = (outcome: FailedOutcome) => new StoreError('no response', { outcome })
const defect = new TypeError('a defect')

/** The row of a pool. */
function rowOf(change: Row = {}): Row {
  return {
    pool: 'p',
    pool_number: 3,
    minted: 7n,
    claimed: 5n,
    writer_id: { toString: () => WRITER },
    secret_fingerprint: 'f',
    owner: null,
    ...change,
  }
}
const POOL = {
  pool: 'p',
  poolNumber: 3,
  minted: 7,
  claimed: 5,
  writerId: WRITER,
  secretFingerprint: 'f',
}

test('readPools() returns every pool, by its number', async () => {
  const { session, statements } = open([
    rowOf({ pool: 'ten', pool_number: 10, low_water: null, target: null }),
    rowOf({ pool: 'nine', pool_number: 9, owner: 'me', low_water: 0n, target: 4000n }),
    rowOf({ pool: 'two', pool_number: 2, owner: undefined, writer_id: null }),
  ])
  const unknown = { owner: null, lowWater: null, target: null }
  expect(await readPools(session)).toEqual([
    { ...POOL, pool: 'two', poolNumber: 2, writerId: null, ...unknown },
    { ...POOL, pool: 'nine', poolNumber: 9, owner: 'me', lowWater: 0, target: 4000 },
    { ...POOL, pool: 'ten', poolNumber: 10, ...unknown },
  ])
  expect(statements).toEqual(['scan SELECT code_pools'])
})

test('storeTargetLevel() is retried while its outcome is unknown', async () => {
  const { session, statements, values } = open(failed('unknown'), failed('not-done'), APPLIED)
  await storeTargetLevel(session, { pool: 'p', target: 4000 })
  expect(statements).toEqual([UPDATE, UPDATE, UPDATE])
  expect(values).toEqual(Array(3).fill([4000n, 'p']))
  expect(pauses).toBe(2)
})

test('storeTargetLevel() of a pool that does not exist is not retried', async () => {
  const { session, statements } = open(NOT_APPLIED)
  await storeTargetLevel(session, { pool: 'p', target: 4000 })
  expect(statements).toEqual([UPDATE])
})

test('the statements of a claim are prepared', () => {
  expect(open().warmedUp).toEqual([
    ...['SELECT code_pools', 'UPDATE code_pools'],
    ...['SELECT code_blocks', 'DELETE code_blocks'],
  ])
})

test('readPoolSerial() returns the pool, if it exists', async () => {
  const { store, statements, values } = open([rowOf()], [])
  expect(await store.readPoolSerial('p')).toEqual(POOL)
  expect(await store.readPoolSerial('q')).toBeUndefined()
  expect([statements, values]).toEqual([
    [READ_SERIAL, READ_SERIAL],
    [['p'], ['q']],
  ])
})

test('a block is stored, read and deleted', async () => {
  const codes = ['a', 'b'].map((letter) => letter.repeat(GENERATED_LENGTH))
  const blob = Buffer.from(codes.join(''))
  const { store, statements, values } = open(APPLIED, [{ codes: blob }], [], [{ codes: null }], [])
  const block = { pool: 'p', seq: 2 }
  await store.putBlock({ ...block, codes })
  const reads = [await store.readBlock(block), await store.readBlock(block)]
  expect([...reads, await store.readBlock(block)]).toEqual([codes, undefined, undefined])
  await store.deleteBlock(block)
  expect(statements).toEqual([
    'plain-write INSERT code_blocks',
    ...Array<string>(3).fill('majority-read SELECT code_blocks'),
    'plain-write DELETE code_blocks',
  ])
  expect(values).toEqual([['p', 2n, blob], ...Array<unknown>(4).fill(['p', 2n])])
})

const change = { pool: 'p', from: 5, writerId: WRITER }

test.each([
  [8, 6],
  [9, 9],
])('advanceMinted() to 8 returns %i if it reads %i', async (minted, read) => {
  const { store, statements, values } = open(APPLIED, [rowOf({ minted: BigInt(read) })])
  expect(await store.advanceMinted({ pool: 'p', from: 7, to: 8 })).toEqual({ ...POOL, minted })
  expect(statements).toEqual([UPDATE, READ_MAJORITY])
  expect(values).toEqual([[8n, 'p', 7n], ['p']])
})

test('claimNext() returns its claim, even if other writers have claimed more', async () => {
  const { store, statements, values } = open(APPLIED, [rowOf({ claimed: 9n, writer_id: null })])
  expect(await store.claimNext(change)).toEqual({ ...POOL, claimed: 6, writerId: WRITER })
  expect(statements).toEqual([UPDATE, READ_MAJORITY])
  expect(values).toEqual([[6n, WRITER, 'p', 5n, 5n], ['p']])
})

/** The two changes of a pool's counters. */
const CHANGES = [
  ['advanceMinted()', (store: Store) => store.advanceMinted({ pool: 'p', from: 6, to: 7 })],
  ['claimNext()', (store: Store) => store.claimNext({ ...change, from: 4 })],
] as const
type Store = ReturnType<typeof open>['store']

test.each(CHANGES)('%s that is not applied returns the row', async (_, apply) => {
  const { store, statements } = open(NOT_APPLIED, [rowOf({ claimed: 6n })])
  expect(await apply(store)).toEqual({ ...POOL, claimed: 6 })
  expect(statements).toEqual([UPDATE, READ_SERIAL])
})

test.each(CHANGES)('%s of an unknown pool throws an error', async (_, apply) => {
  await expect(apply(open(NOT_APPLIED, []).store)).rejects.toThrow(/^unknown pool p$/)
  const { store, statements } = open(APPLIED, [])
  await expect(apply(store)).rejects.toMatchObject({ name: 'Error', message: 'unknown pool p' })
  expect(statements).toEqual([UPDATE, READ_MAJORITY])
})

test.each(CHANGES)('%s that fails is not read', async (_, apply) => {
  const error = failed('not-done')
  const { store, statements } = open(error)
  await expect(apply(store)).rejects.toBe(error)
  expect(statements).toEqual([UPDATE])
})

test.each(CHANGES)('%s reads the row serially if the first read fails', async (_, apply) => {
  const { store, statements } = open(APPLIED, failed('not-done'), [rowOf()])
  expect(await apply(store)).toEqual(POOL)
  expect(statements).toEqual([UPDATE, READ_MAJORITY, READ_SERIAL])
})

test.each(CHANGES)('%s has an unknown outcome if both reads fail', async (_, apply) => {
  const cause = failed('not-done')
  const { store, statements } = open(APPLIED, failed('unknown'), cause)
  const expected = { name: 'StoreError', outcome: 'unknown', cause }
  await expect(apply(store)).rejects.toMatchObject(expected)
  expect(statements).toEqual([UPDATE, READ_MAJORITY, READ_SERIAL])
})

test.each(CHANGES)('%s throws a defect of either read', async (_, apply) => {
  const { store, statements } = open(APPLIED, defect)
  await expect(apply(store)).rejects.toBe(defect)
  expect(statements).toEqual([UPDATE, READ_MAJORITY])
  await expect(apply(open(APPLIED, failed('unknown'), defect).store)).rejects.toBe(defect)
})

const created = { ...POOL, minted: 0, claimed: 0, writerId: null }
const NUMBERS = [0, 1, 2].map((number) => ({ pool_number: number, pool: `pool ${number}` }))
const insert = (store: Store) => store.insertPoolIfAbsent({ pool: 'p', secretFingerprint: 'f' })

test('insertPoolIfAbsent() of an existing pool changes nothing', async () => {
  const { store, statements } = open([rowOf()])
  expect(await insert(store)).toEqual(POOL)
  expect(statements).toEqual([READ_SERIAL])
})

test('insertPoolIfAbsent() takes a number and inserts the pool', async () => {
  const { store, statements, values } = open([], NUMBERS, APPLIED, [], APPLIED)
  expect(await insert(store)).toEqual(created)
  expect(statements).toEqual([READ_SERIAL, READ_NUMBERS, TAKE_NUMBER, READ_SERIAL, INSERT_POOL])
  expect(values).toEqual([['p'], undefined, [3, 'p'], ['p'], ['p', 3, 0n, 0n, 'f']])
  expect(pauses).toBe(0)
})

test.each([
  ['another process has inserted the pool', NOT_APPLIED],
  ['the outcome is unknown', failed('unknown')],
])('insertPoolIfAbsent() reads the pool if %s', async (_, result) => {
  const { store, statements } = open([], NUMBERS, APPLIED, [], result, [rowOf()])
  expect(await insert(store)).toEqual(POOL)
  expect(statements.slice(3)).toEqual([READ_SERIAL, INSERT_POOL, READ_SERIAL])
  expect(pauses).toBe(1)
})

test('insertPoolIfAbsent() retries an insert that was not done', async () => {
  const { store, statements } = open([], NUMBERS, APPLIED, [], failed('unknown'), [], APPLIED)
  expect(await insert(store)).toEqual(created)
  expect(statements.slice(5)).toEqual([READ_SERIAL, INSERT_POOL])
})

test('takeNumber() returns the number that the pool already has', async () => {
  const { session, statements } = open([...NUMBERS, { pool_number: 3, pool: 'p' }])
  expect(await takeNumber(session, 'p')).toBe(3)
  expect(statements).toEqual([READ_NUMBERS])
})

test('takeNumber() skips each number that another process takes first', async () => {
  const taken = [{ '[applied]': false, pool: 'q' }]
  const { session, values } = open(NUMBERS.slice(1), taken, taken, APPLIED)
  expect(await takeNumber(session, 'p')).toBe(4)
  expect(values.slice(1)).toEqual([0, 3, 4].map((number) => [number, 'p']))
})

test('takeNumber() retries the same number while the outcome is unknown', async () => {
  const own = [{ '[applied]': false, pool: 'p' }] // taken by the first attempt
  const { session, statements, values } = open(NUMBERS, failed('unknown'), own)
  expect(await takeNumber(session, 'p')).toBe(3)
  expect(statements).toEqual([READ_NUMBERS, TAKE_NUMBER, TAKE_NUMBER])
  expect(values.slice(1)).toEqual(Array(2).fill([3, 'p']))
})

test('takeNumber() fails after twelve attempts of unknown outcome', async () => {
  const { session, values } = open(NUMBERS, failed('unknown'))
  await expect(takeNumber(session, 'p')).rejects.toMatchObject({ outcome: 'unknown' })
  expect(values.slice(1)).toEqual(Array(12).fill([3, 'p']))
})

test('takeNumber() throws an OperatorError if every number is taken', async () => {
  const all = Array.from({ length: POOL_NUMBERS }, (_, i) => ({ pool_number: i, pool: 'q' }))
  const { session, statements } = open(all)
  await expect(takeNumber(session, 'p')).rejects.toThrow(OperatorError)
  expect(statements).toEqual([READ_NUMBERS])
  const last = open(all.slice(0, -1), APPLIED)
  expect(await takeNumber(last.session, 'p')).toBe(POOL_NUMBERS - 1)
})
