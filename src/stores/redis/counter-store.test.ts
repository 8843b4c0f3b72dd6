// Which Redis and which hash slot counts the hits of a call, and what is refunded if one of them
// denies it. The connections are fakes.
import { beforeEach, expect, test } from '@jest/globals'
import {
  admitted,
  type FakeRedisConnection,
  openFakeRedis,
} from '../../../test/kit/ratelimit/fake-redis-connection.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { createRedisCounterStore } from './counter-store.ts'

const limit = { requests: 9, windowUs: 1_000_000, burst: 9, denyConsumes: false }
const update = (key: string, isPerSecond = false, hits = 1): CounterUpdate => ({
  ...{ key, algorithm: fixedWindow, limit, hits, veto: 'alone', isPerSecond },
})

let main: FakeRedisConnection
let perSecond: FakeRedisConnection
let failures: unknown[]

beforeEach(() => {
  main = openFakeRedis()
  perSecond = openFakeRedis()
  failures = []
})

const open = (more: object = { perSecond: perSecond.connection }) =>
  createRedisCounterStore({
    ...{ connection: main.connection, keyPrefix: 'p:' },
    onFailure: (error) => failures.push(error),
    ...more,
  })
const remainingOf = async (calls: Promise<readonly { readonly remaining: number }[]>) =>
  (await calls).map(({ remaining }) => remaining)
const messageOf = (call: Promise<unknown>) =>
  call.then(
    () => 'resolved',
    (error: unknown) => {
      const { message, outcome } = error as { message: string; outcome: string }
      return `${message}: ${outcome}`
    },
  )
const keysOf = ({ sent }: FakeRedisConnection) => sent.map(({ keys }) => keys.join())
/** Denies the first key. */
const deny = (redis: FakeRedisConnection) => {
  redis.respond = ({ keys }) => Promise.resolve([0, 700_000, 1, 5, ...admitted(keys.slice(1))])
}
const settle = () => new Promise((resolve) => setImmediate(resolve))

test('a call without updates sends nothing', async () => {
  expect([await open().consume([]), main.sent, perSecond.sent]).toEqual([[], [], []])
})

test('limits per second are counted on their own Redis, in the order of the call', async () => {
  const store = open()
  const updates = [update('a1'), update('b2', true), update('c3'), update('d4', true)]
  expect(await remainingOf(store.consume(updates))).toEqual([1, 2, 3, 4])
  expect([keysOf(main), keysOf(perSecond)]).toEqual([['p:a1,p:c3'], ['p:b2,p:d4']])
})

test('without a second Redis, all are counted on the first', async () => {
  const store = open({})
  expect(await remainingOf(store.consume([update('a1'), update('b2', true)]))).toEqual([1, 2])
  expect([keysOf(main), perSecond.sent]).toEqual([['p:a1,p:b2'], []])
})

test('on a Cluster, each slot is counted by its own script', async () => {
  main = openFakeRedis(true)
  const updates = [update('{a}1'), update('{b}2'), update('{a}3')]
  expect(await remainingOf(open({}).consume(updates))).toEqual([1, 2, 3])
  expect(keysOf(main)).toEqual(['p:{a}1,p:{a}3', 'p:{b}2'])
})

test('if one Redis denies the call, the hits on the other are refunded', async () => {
  deny(perSecond)
  const decisions = await open().consume([update('a1', false, 2), update('b2', true)])
  expect(decisions).toMatchObject([
    { admitted: true, remaining: 3 },
    { admitted: false, remaining: 0 },
  ])
  await settle()
  expect(keysOf(main)).toEqual(['p:a1', 'p:a1'])
  expect(main.sent[1]?.args.slice(-2)).toEqual(['1', '-2'])
  expect(main.sent[1]?.args).toContain('never')
  expect(main.sent[1]?.retry?.isRetryable).toBe(false)
  expect(keysOf(perSecond)).toEqual(['p:b2'])
})

test('a refund that fails is reported, and the decisions remain', async () => {
  deny(perSecond)
  const { respond } = main
  main.respond = (script) =>
    main.sent.length === 1 ? respond(script) : Promise.reject(new Error('lost'))
  const decisions = await open().consume([update('a1'), update('b2', true)])
  await settle()
  await settle()
  expect([decisions.length, failures]).toMatchObject([
    2,
    [{ message: 'Redis did not count the hits: lost' }],
  ])
})

test('a denied call on one Redis refunds nothing', async () => {
  deny(main)
  await open({}).consume([update('a1'), update('b2')])
  await settle()
  expect(keysOf(main)).toEqual(['p:a1,p:b2'])
})

test('a reset removes each counter from its own Redis', async () => {
  await open().reset([update('a'), update('b', true), update('c')])
  expect([main.called, perSecond.called]).toEqual([['del p:a,p:c'], ['del p:b']])
  await open({}).reset([update('d', true)])
  expect([main.called.at(-1), perSecond.called.length]).toEqual(['del p:d', 1])
})

test('on a Cluster, a reset removes one key at a time', async () => {
  main = openFakeRedis(true)
  await open({}).reset([update('a'), update('b')])
  expect(main.called).toEqual(['del p:a', 'del p:b'])
})

test.each([
  ['rejects', () => Promise.reject(new Error('lost')), 'Redis cannot remove the counters: unknown'],
  ['hangs', () => new Promise(() => undefined), 'Redis did not remove the counters: unknown'],
])('a reset fails if Redis %s', async (_name, reply, message) => {
  main.reply = reply
  expect(await messageOf(open().reset([update('a')]))).toBe(message)
})

test('a probe needs a response and a count of each Redis', async () => {
  const store = open()
  await store.probe()
  expect([main.called, perSecond.called]).toEqual([['ping'], ['ping']])
  expect([keysOf(main), keysOf(perSecond)]).toEqual([['p:probe'], ['p:probe']])
  perSecond.respond = () => Promise.reject(new Error('OOM'))
  expect(await messageOf(store.probe())).toBe('Redis did not count the hits: OOM: unknown')
  perSecond.reply = () => Promise.reject(new Error('lost'))
  expect(await messageOf(store.probe())).toBe('Redis did not respond to a PING: not-done')
  perSecond.reply = () => new Promise(() => undefined)
  expect(await messageOf(store.probe())).toBe('Redis did not respond to a PING in 100 ms: not-done')
})

test('a close closes every connection', () => {
  open().close()
  expect([main.called, perSecond.called]).toEqual([['close'], ['close']])
})
