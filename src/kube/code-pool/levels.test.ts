// Levels of pools in the store: for how long a read is valid, which read a caller gets, and what is
// reported of changes.
import { beforeEach, expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createLevels, type Levels, type StoredPool } from './levels.ts'

const row = (pool: string, minted: number, more: Partial<StoredPool> = {}): StoredPool => ({
  ...{ pool, minted, claimed: 0, owner: null, lowWater: null, target: null },
  ...more,
})
let nowMs: number
let reads: number
let read: () => Promise<readonly StoredPool[]>
let changes: (readonly string[] | 'all')[]
let errors: unknown[]
let levels: Levels

beforeEach(() => {
  nowMs = 1000
  reads = 0
  read = () => Promise.resolve([row('p', 5)])
  changes = []
  errors = []
  levels = createLevels({
    readPools() {
      reads++
      return read()
    },
    onChange: (pools) => changes.push(pools),
    onError: (error) => errors.push(error),
    ...{ connected: Promise.resolve(), nowMs: () => nowMs, metrics: createMetrics() },
  })
})

const unavailable = () => Promise.reject(new Error('unavailable'))

test('a read is valid for a minute, not for a millisecond more', async () => {
  expect(levels.get('p')).toMatchObject({ kind: 'unknown' })
  expect(await levels.refresh()).toBe(true)
  read = unavailable
  nowMs += 59_999
  expect(await levels.refresh()).toBe(false)
  expect(levels.get('p')).toMatchObject({ kind: 'there', level: 5000 })
  expect(levels.get('q')).toEqual({ kind: 'absent' })
  nowMs += 1
  expect(levels.get('p')).toEqual({ kind: 'unknown', why: 'the store of codes does not answer' })
})

test('a caller during a read gets the next one, which several callers share', async () => {
  const first = Promise.withResolvers<readonly StoredPool[]>()
  read = () => first.promise
  const early = levels.refresh()
  read = () => Promise.resolve([row('p', 4)])
  const late = [levels.refresh(), levels.refresh()]
  expect(reads).toBe(1)
  first.resolve([row('p', 5)])
  expect([await early, ...(await Promise.all(late))]).toEqual([true, true, true])
  expect([reads, levels.get('p')]).toMatchObject([2, { level: 4000 }])
  // So it is the next time: a read that has ended is given to no one.
  const third = levels.refresh()
  read = () => Promise.resolve([row('p', 3)])
  await Promise.all([third, levels.refresh()])
  expect([reads, levels.get('p')]).toMatchObject([4, { level: 3000 }])
})

test('a failed read leaves the next ones to be made', async () => {
  read = unavailable
  expect([await levels.refresh(), await levels.refresh(), reads]).toEqual([false, false, 2])
  read = () => Promise.resolve([])
  expect([await levels.refresh(), reads, levels.get('p')]).toEqual([true, 3, { kind: 'absent' }])
})

test('each member of a row that changes is reported, and a row that came or went', async () => {
  await levels.refresh()
  expect(changes.splice(0)).toEqual(['all'])
  await levels.refresh()
  expect(changes).toEqual([])
  const rows = [
    row('p', 6),
    row('p', 6, { claimed: 1 }),
    row('p', 6, { claimed: 1, owner: 'o' }),
    row('p', 6, { claimed: 1, owner: 'o', lowWater: 1 }),
    row('p', 6, { claimed: 1, owner: 'o', lowWater: 1, target: 2 }),
  ]
  for (const one of rows) {
    read = () => Promise.resolve([one])
    await levels.refresh()
    expect(changes.splice(0)).toEqual([['p']])
  }
  read = () => Promise.resolve([row('q', 1)])
  await levels.refresh()
  expect(changes).toEqual([['p', 'q']])
  expect(levels.get('p')).toEqual({ kind: 'absent' })
})

test('of failures in a row the first is reported, and all pools are read afterwards', async () => {
  await levels.refresh()
  changes.length = 0
  read = unavailable
  await levels.refresh()
  await levels.refresh()
  expect([errors.length, changes]).toEqual([1, []])
  nowMs += 60_000
  await levels.refresh()
  expect([errors.length, changes.splice(0)]).toEqual([1, ['all']]) // no read is valid any more
  read = () => Promise.resolve([row('p', 5)])
  await levels.refresh()
  expect(changes.splice(0)).toEqual(['all'])
  read = unavailable
  await levels.refresh()
  read = () => Promise.resolve([row('p', 5)])
  await levels.refresh() // somebody may have been told of the failure
  expect([errors.length, changes]).toEqual([2, ['all']])
})

test('1,000 pools are kept, no more', async () => {
  read = () => Promise.resolve(Array.from({ length: 1001 }, (_, i) => row(`p${i}`, 1)))
  await levels.refresh()
  expect(levels.get('p999')).toMatchObject({ kind: 'there' })
  expect(levels.get('p1000')).toEqual({ kind: 'absent' })
})

test('the first read settles the levels, also one that failed', async () => {
  let isSettled = false
  void levels.settled.then(() => (isSettled = true))
  await Promise.resolve()
  expect(isSettled).toBe(false)
  read = unavailable
  await levels.refresh()
  await levels.settled
  expect(isSettled).toBe(true)
})
