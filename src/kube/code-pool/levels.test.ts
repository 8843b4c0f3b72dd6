// Levels of pools in the store: how long a read is valid, which read a caller gets, and which
// changes are reported.
import { beforeEach, expect, test } from '@jest/globals'
import { waitFor } from '../../../test/kit/wait-for.ts'
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
let connected: PromiseWithResolvers<undefined>

beforeEach(() => {
  nowMs = 1000
  reads = 0
  read = () => Promise.resolve([row('p', 5)])
  changes = []
  errors = []
  connected = Promise.withResolvers()
  levels = createLevels({
    readPools() {
      reads++
      return read()
    },
    onChange: (pools) => changes.push(pools),
    onError: (error) => errors.push(error),
    ...{ connected: connected.promise, nowMs: () => nowMs, metrics: createMetrics() },
    everyMs: 1,
  })
})

const unavailable = () => Promise.reject(new Error('unavailable'))

test('a read is valid for exactly one minute', async () => {
  const reason = 'the store has not responded yet'
  expect(levels.get('p')).toEqual({ kind: 'unknown', reason })
  expect(await levels.refresh()).toBe(true)
  read = unavailable
  nowMs += 59_999
  expect(await levels.refresh()).toBe(false)
  expect(levels.get('p')).toMatchObject({ kind: 'present', level: 5000 })
  expect(levels.get('q')).toEqual({ kind: 'absent' })
  nowMs += 1
  expect(levels.get('p')).toEqual({ kind: 'unknown', reason: 'the code store is unavailable' })
})

test('all calls during a read get the result of the next read', async () => {
  const response = Promise.withResolvers<readonly StoredPool[]>()
  read = () => response.promise
  const first = levels.refresh()
  read = () => Promise.resolve([row('p', 4)])
  const duringRead = [levels.refresh(), levels.refresh()]
  expect(reads).toBe(1)
  response.resolve([row('p', 5)])
  expect([await first, ...(await Promise.all(duringRead))]).toEqual([true, true, true])
  expect([reads, levels.get('p')]).toMatchObject([2, { level: 4000 }])
  // The same applies later: a completed read is never returned to a new caller.
  const third = levels.refresh()
  read = () => Promise.resolve([row('p', 3)])
  await Promise.all([third, levels.refresh()])
  expect([reads, levels.get('p')]).toMatchObject([4, { level: 3000 }])
})

test('a failed read does not prevent the next one', async () => {
  read = unavailable
  expect([await levels.refresh(), await levels.refresh(), reads]).toEqual([false, false, 2])
  read = () => Promise.resolve([])
  expect([await levels.refresh(), reads, levels.get('p')]).toEqual([true, 3, { kind: 'absent' }])
})

test('of too many pools, the known ones stay known, and others are unknown', async () => {
  const pools = Array.from({ length: 1000 }, (_, at) => row(`p${at}`, 5))
  read = () => Promise.resolve(pools)
  await levels.refresh()
  expect([levels.get('q'), errors]).toEqual([{ kind: 'absent' }, []])
  read = () => Promise.resolve([row('q', 5), ...pools])
  await levels.refresh()
  await levels.refresh()
  const reason = 'the store has more than 1000 pools'
  expect(levels.get('q')).toEqual({ kind: 'unknown', reason })
  expect(errors).toEqual([new Error(reason)])
  expect(levels.get('p999')).toMatchObject({ kind: 'present' })
  expect(changes.splice(0)).toEqual(['all', 'all'])
  read = () => Promise.resolve(pools.slice(1))
  await levels.refresh()
  expect([levels.get('p0'), changes]).toEqual([{ kind: 'absent' }, ['all']])
})

test('a change of any field of a row is reported, and an added or removed row', async () => {
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

test('the first of consecutive failures is reported, then all pools on recovery', async () => {
  await levels.refresh()
  changes.length = 0
  read = unavailable
  await levels.refresh()
  await levels.refresh()
  expect([errors.length, changes]).toEqual([1, []])
  nowMs += 60_000
  await levels.refresh()
  expect([errors.length, changes.splice(0)]).toEqual([1, ['all']]) // the last read has expired
  read = () => Promise.resolve([row('p', 5)])
  await levels.refresh()
  expect(changes.splice(0)).toEqual(['all'])
  read = unavailable
  await levels.refresh()
  read = () => Promise.resolve([row('p', 5)])
  await levels.refresh() // a caller may have observed the failure
  expect([errors.length, changes]).toEqual([2, ['all']])
})

test('`firstRead` resolves after the first read, even if that fails', async () => {
  let isSettled = false
  void levels.firstRead.then(() => (isSettled = true))
  await Promise.resolve()
  expect(isSettled).toBe(false)
  read = unavailable
  await levels.refresh()
  await levels.firstRead
  expect(isSettled).toBe(true)
})

test('polling starts once the store is connected', async () => {
  const polling = levels.start()
  await new Promise((resolve) => setImmediate(resolve))
  expect(reads).toBe(0)
  connected.resolve(undefined)
  await waitFor('two reads', () => reads >= 2)
  await polling.stop()
  expect([levels.get('p'), errors]).toMatchObject([{ kind: 'present' }, []])
})

test('a stop before the store is connected completes without a read', async () => {
  await levels.start().stop()
  expect(reads).toBe(0)
})

test('the state of a pool has its rate, and its marks and owner in the store', async () => {
  const stored = { owner: 'o', lowWater: 1, target: 2 }
  for (const claimed of [0, 1, 2]) {
    read = () => Promise.resolve([row('p', 5, { claimed, ...stored })])
    await levels.refresh()
    nowMs += 3_600_000
  }
  nowMs -= 3_600_000
  const expected = { kind: 'present', level: 3000, ...stored }
  expect(levels.get('p')).toEqual({ ...expected, rate: expect.any(Number) })
  expect(levels.get('p')).toHaveProperty('rate', expect.closeTo(500 / 3600))
})
