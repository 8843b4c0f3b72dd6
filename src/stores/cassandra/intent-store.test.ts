// Intents on a fake session that returns prepared results: TTLs near the end of an intent, lost
// races and rows that are partly expired, which a real node has only by chance.
import { afterEach, expect, jest, test } from '@jest/globals'
import { type Intent, INTENT_TTL_MS } from '../../links/intent-store.ts'
import type { CassandraSession } from './client.ts'
import { createCassandraIntentStore } from './intent-store.ts'
import type { Row } from './row.ts'

afterEach(() => {
  jest.restoreAllMocks()
})

const WRITER = 'd9428888-122b-11e1-b85c-61cd3cbb3210'
const CREATED_AT_MS = 1_790_000_000_000
const EXPIRES_AT_MS = CREATED_AT_MS + 1000
const END_MS = CREATED_AT_MS + INTENT_TTL_MS
const TTL_SECONDS = INTENT_TTL_MS / 1000

const intent: Intent = {
  keyHash: 'key',
  bodyHash: 'body',
  code: 'abc',
  writerId: WRITER,
  createdAtMs: CREATED_AT_MS,
  expiresAtMs: EXPIRES_AT_MS,
}
const ROW: Row = {
  key_hash: 'key',
  body_hash: 'other body',
  short_code: 'other',
  writer_id: { toString: () => 'other writer' },
  created_at: new Date(CREATED_AT_MS + 1),
  expires_at: new Date(EXPIRES_AT_MS + 1),
}
/** The intent of ROW. */
const stored: Intent = {
  keyHash: 'key',
  bodyHash: 'other body',
  code: 'other',
  writerId: 'other writer',
  createdAtMs: CREATED_AT_MS + 1,
  expiresAtMs: EXPIRES_AT_MS + 1,
}

/** A session that returns `results` in turn; and its statements, as kind, verb and values. */
function open(...results: readonly (readonly Row[])[]) {
  const calls: unknown[][] = []
  const warmedUp: string[] = []
  const verbOf = (cql: string) => cql.split(' ', 1).join()
  const session: CassandraSession = {
    warmUp: (given) => warmedUp.push(...given.map(verbOf)),
    execute(kind, cql, values) {
      calls.push([kind, verbOf(cql), values])
      return Promise.resolve(results[calls.length - 1] ?? [])
    },
  }
  /** The store at a time. */
  const storeAt = (nowMs = CREATED_AT_MS) => createCassandraIntentStore(session, () => nowMs)
  return { session, storeAt, calls, warmedUp }
}

const APPLIED = [{ '[applied]': true }]
const READ = ['serial-read', 'SELECT', ['key']]

/** The insert of `intent`. */
const insertOf = (ttlSeconds: number, expiresAt: Date | undefined = new Date(EXPIRES_AT_MS)) => [
  ...['lwt', 'INSERT'],
  ['key', 'body', 'abc', WRITER, new Date(CREATED_AT_MS), expiresAt, ttlSeconds],
]

test('the read and the insert are prepared', () => {
  const { storeAt, warmedUp } = open()
  storeAt()
  expect(warmedUp).toEqual(['SELECT', 'INSERT'])
})

test('an intent that is inserted is returned', async () => {
  const { storeAt, calls } = open(APPLIED)
  expect(await storeAt().insertIfAbsent(intent)).toBe(intent)
  expect(calls).toEqual([insertOf(TTL_SECONDS)])
})

test('an intent without expiry is inserted without a value for it', async () => {
  const { storeAt, calls } = open(APPLIED)
  await storeAt().insertIfAbsent({ ...intent, expiresAtMs: null })
  const [[, , values = []] = []] = calls
  expect((values as unknown[]).slice(-2)).toEqual([undefined, TTL_SECONDS])
})

test('an insert that is not applied returns the stored intent', async () => {
  const { storeAt, calls } = open([{ '[applied]': false, ...ROW }])
  expect(await storeAt().insertIfAbsent(intent)).toEqual(stored)
  expect(calls).toHaveLength(1)
})

test('by default the TTL is relative to the system clock', async () => {
  jest.spyOn(Date, 'now').mockReturnValue(END_MS - 7000)
  const { session, calls } = open(APPLIED)
  await createCassandraIntentStore(session).insertIfAbsent(intent)
  expect(calls).toEqual([insertOf(7)])
})

test.each([
  [2001, 3],
  [2000, 2],
  [1, 1],
  [0, 1],
  [-5000, 1],
])('%i ms before its end, an intent is inserted with a TTL of %i s', async (ms, ttlSeconds) => {
  const { storeAt, calls } = open(APPLIED)
  await storeAt(END_MS - ms).insertIfAbsent(intent)
  expect(calls).toEqual([insertOf(ttlSeconds)])
})

test.each([
  [INTENT_TTL_MS, TTL_SECONDS],
  [1001, 2],
  [1, 1],
])('%i ms before its end, an intent is moved with a TTL of %i s', async (ms, ttlSeconds) => {
  const { storeAt, calls } = open(APPLIED)
  const moved = await storeAt(END_MS - ms).move({ intent, to: 'new' })
  expect(moved).toEqual({ ...intent, code: 'new' })
  expect(calls).toEqual([['lwt', 'UPDATE', [ttlSeconds, 'new', 'key', WRITER, 'abc']]])
})

test.each([0, -5000])('%i ms before its end, an intent is only read', async (ms) => {
  const { storeAt, calls } = open([ROW])
  expect(await storeAt(END_MS - ms).move({ intent, to: 'new' })).toEqual(stored)
  expect(calls).toEqual([READ])
})

test.each([
  ['another intent, which is returned', [ROW], stored],
  ['no intent', [], undefined],
])('a move that is not applied finds %s', async (_, rows, expected) => {
  const { storeAt, calls } = open([{ '[applied]': false }], rows)
  expect(await storeAt().move({ intent, to: 'new' })).toEqual(expected)
  expect(calls.slice(1)).toEqual([READ])
})

test.each([
  [[ROW], stored],
  [[{ ...ROW, expires_at: null }], { ...stored, expiresAtMs: null }],
  [[], undefined],
])('readSerial() returns the intent, if it exists', async (rows, expected) => {
  const { storeAt, calls } = open(rows)
  expect(await storeAt().readSerial('key')).toEqual(expected)
  expect(calls).toEqual([READ])
})

test.each(['body_hash', 'short_code', 'writer_id', 'created_at'])(
  'a row whose %s has expired is a StoreError, to be retried',
  async (column) => {
    const expected = { name: 'StoreError', outcome: 'unknown' }
    const row = { ...ROW, [column]: null }
    await expect(open([row]).storeAt().readSerial('key')).rejects.toMatchObject(expected)
    const { storeAt } = open([{ '[applied]': false, ...row }])
    await expect(storeAt().insertIfAbsent(intent)).rejects.toMatchObject(expected)
  },
)
