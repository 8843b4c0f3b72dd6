// Which calls share a script, and what they return if Redis fails. The connection is a fake.
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { bytesLeftPerCall } from '../../../test/kit/bytes-left.ts'
import {
  admitted,
  type FakeRedisConnection,
  openFakeRedis,
} from '../../../test/kit/ratelimit/fake-redis-connection.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { type Batches, CALLS_IN_FLIGHT_MAX, createBatches } from './batches.ts'
import { countScript, countScriptSha } from './script.ts'

const TIMEOUT_MS = 100
const limit = { requests: 9, windowUs: 1_000_000, burst: 9, denyConsumes: false }
const update = (key: string, hits = 1): CounterUpdate => ({
  ...{ key, algorithm: fixedWindow, limit, hits, veto: 'alone', isPerSecond: false },
})

let redis: FakeRedisConnection
let batches: Batches

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] })
  redis = openFakeRedis()
  batches = createBatches({ connection: redis.connection, keyPrefix: 'p:' })
})
afterEach(() => {
  jest.useRealTimers()
})

const turn = () => new Promise((resolve) => setImmediate(resolve))
const add = (slot: number, ...updates: readonly CounterUpdate[]) =>
  batches.add(slot, updates).then(
    (decisions) => decisions.map(({ remaining }) => remaining),
    (error: unknown) => {
      const { message, outcome } = error as { message: string; outcome: string }
      return `${message}: ${outcome}`
    },
  )
const keysOf = () => redis.sent.map(({ keys }) => keys.join())

test('the calls of one turn and slot share a script, and each gets its own decisions', async () => {
  const all = [add(0, update('a1'), update('a2')), add(1, update('b3')), add(0, update('a4'))]
  expect(redis.sent).toEqual([])
  expect(await Promise.all(all)).toEqual([[1, 2], [3], [4]])
  expect(keysOf()).toEqual(['p:a1,p:a2,p:a4', 'p:b3'])
  expect(redis.sent[0]).toMatchObject({ command: 'evalsha', script: countScriptSha })
  expect(await add(0, update('a5'))).toEqual([5])
  expect(keysOf()).toHaveLength(3)
})

test('a call with a refund has a script of its own slot, which is not sent twice', async () => {
  const refund = [update('a1', -1), update('a2', 1)]
  const all = [add(0, update('a3', 0)), add(0, ...refund), add(1, update('b4', -2))]
  expect(await Promise.all(all)).toEqual([[3], [1, 2], [4]])
  expect(keysOf()).toEqual(['p:a3', 'p:a1,p:a2', 'p:b4'])
  expect(redis.sent.map(({ retry }) => retry?.isRetryable)).toEqual([true, false, false])
})

test('a script with 128 updates is sent immediately', async () => {
  const call = (updates: number) => add(0, ...Array.from({ length: updates }, () => update('a1')))
  const all = [call(100), call(27)]
  expect(redis.sent).toEqual([])
  all.push(call(1), call(1))
  expect(redis.sent.map(({ keys }) => keys.length)).toEqual([128])
  await Promise.all(all)
  expect(redis.sent.map(({ keys }) => keys.length)).toEqual([128, 1])
})

test('at most 10,000 calls are in flight', async () => {
  const all = Array.from({ length: CALLS_IN_FLIGHT_MAX }, () => add(0, update('a1')))
  expect(await add(0, update('a1'))).toBe('10000 calls are already waiting for Redis: not-done')
  await Promise.all(all)
  expect(await add(0, update('a1'))).toEqual([1])
})

test('while Redis is not connected, nothing is sent', async () => {
  redis.isUp = false
  expect([await add(0, update('a1')), redis.sent]).toEqual(['Redis is not connected: not-done', []])
})

test('if Redis does not have the script, its source is sent', async () => {
  redis.respond = ({ command, keys }) =>
    command === 'evalsha'
      ? Promise.reject(new Error('NOSCRIPT No matching script.'))
      : Promise.resolve(admitted(keys))
  expect(await add(0, update('a1'))).toEqual([1])
  expect(redis.sent.map(({ command, script }) => [command, script])).toEqual([
    ['evalsha', countScriptSha],
    ['eval', countScript],
  ])
  expect(redis.sent[1]).toMatchObject({ keys: ['p:a1'], retry: redis.sent[0]?.retry })
})

test('every call of a script that fails has the error, and its outcome is unknown', async () => {
  redis.respond = () => Promise.reject(new Error('OOM command not allowed'))
  const expected = 'Redis did not count the hits: OOM command not allowed: unknown'
  const all = [add(0, update('a1')), add(0, update('a2'))]
  expect([await Promise.all(all), redis.sent.length]).toEqual([[expected, expected], 1])
})

test('a reply of the wrong length is an error', async () => {
  redis.respond = () => Promise.resolve([1, 2, 3])
  expect(await add(0, update('a1'))).toBe('Redis returned an invalid decision: unknown')
})

test('without a reply, a call fails at its timeout', async () => {
  redis.respond = () => new Promise(() => undefined)
  const settled: unknown[] = []
  void add(0, update('a1')).then((result) => settled.push(result))
  await turn()
  await jest.advanceTimersByTimeAsync(TIMEOUT_MS - 1)
  expect(settled).toEqual([])
  await jest.advanceTimersByTimeAsync(1)
  expect(settled).toEqual([`Redis did not respond within ${TIMEOUT_MS} ms: unknown`])
})

test('a missing script that is reported after the timeout is not sent', async () => {
  redis.respond = async ({ command }) => {
    if (command === 'eval') return admitted(['a1'])
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS))
    throw new Error('NOSCRIPT No matching script.')
  }
  const result = add(0, update('a1'))
  await turn()
  await jest.advanceTimersByTimeAsync(TIMEOUT_MS)
  expect(await result).toMatch(/: unknown$/)
  await turn()
  expect(redis.sent.map(({ command }) => command)).toEqual(['evalsha'])
})

test('completed calls are freed by minor garbage collections', async () => {
  const bytes = await bytesLeftPerCall(async () => {
    redis.sent.length = 0
    await add(0, update(randomBytes(5000).toString('hex')))
  })
  expect(bytes).toBeLessThan(2000)
})
