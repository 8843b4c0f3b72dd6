// The script that Redis runs decides like the algorithms in TypeScript, at each step of random
// histories: the same decisions, state and expiry, also when the clock jumps.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import {
  type Algorithm,
  COUNT_MAX,
  type CounterState,
  type Decision,
  type Limit,
} from '../../../src/limits/algorithm.ts'
import { algorithms } from '../../../src/limits/algorithms.ts'
import type { CounterUpdate, Veto } from '../../../src/limits/counter-store.ts'
import { decideTogether } from '../../../src/limits/decide-together.ts'
import { decodeReply, encodeCalls } from '../../../src/stores/redis/count-wire.ts'
import { countScript } from '../../../src/stores/redis/script.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { newSeed } from '../../kit/random.ts'

const START_US = 1_790_000_000_000_000
const LONG_MS = 1_000_000_000
const HITS_MAX = 2 ** 32 - 1
const TEST_MS_MAX = 180_000

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = clientOf(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.close()
})

interface Entry {
  readonly state: CounterState
  readonly expiresAtUs: number
}

const limits = fc.record({
  requests: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 40 }) }, fc.constant(0)),
  windowUs: fc.constantFrom(1_000_000, 60_000_000, 3_600_000_000, 7_000_003),
  burst: fc.integer({ min: 0, max: 40 }),
  denyConsumes: fc.boolean(),
})
const hitsOfCalls = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 4 }) },
  { weight: 2, arbitrary: fc.integer({ min: -5, max: -1 }) },
  { weight: 1, arbitrary: fc.constantFrom(30, HITS_MAX, -HITS_MAX) },
)
const waits = fc.oneof(
  fc.constantFrom(0, 1, 999_999, 1_000_000, 60_000_000, 7_000_003),
  fc.integer({ min: 0, max: 2_000_000 }),
  fc.integer({ min: 0, max: 2 ** 33 }),
  fc.integer({ min: -5_000_000, max: 0 }),
  fc.integer({ min: -(2 ** 33), max: 0 }),
)
const countsOf = (keys: number) =>
  fc.array(
    fc.record({
      key: fc.integer({ min: 0, max: keys - 1 }),
      hits: hitsOfCalls,
      veto: fc.constantFrom<Veto>('alone', 'alone', 'together', 'never'),
    }),
    { minLength: 1, maxLength: 4 },
  )
const histories = (keys: number) =>
  fc.array(
    fc.record({
      waitUs: waits,
      calls: fc.array(countsOf(keys), { minLength: 1, maxLength: 3 }),
    }),
    { maxLength: 30 },
  )

function limitOf(algorithm: Algorithm, shape: Limit): Limit {
  const { requests, burst } = shape
  return { ...shape, burst: algorithm.takesBurst ? requests + burst : requests }
}

/** Writes the state to Redis, runs the script and reads the new state, in one transaction. */
async function runStep(given: {
  calls: readonly (readonly CounterUpdate[])[]
  nowUs: number
  stored: ReadonlyMap<string, Entry>
  keys: readonly { key: string; algorithm: Algorithm }[]
}) {
  const { calls, nowUs, stored, keys } = given
  const [startedMs, step] = [timeMs(await client.time()), client.multi()]
  for (const { key, algorithm } of keys) {
    const state = stored.get(key)?.state
    step.del(key)
    if (state === undefined || state.length === 0) continue
    if (algorithm.name === 'sliding_window_log') step.rpush(key, ...state)
    else step.set(key, decimals(state).join(' '))
    step.pexpire(key, LONG_MS)
  }
  const [keyCount = '0', ...rest] = encodeCalls(calls, { keyPrefix: '', nowUs })
  step.eval(countScript, keyCount, ...rest)
  for (const { key, algorithm } of keys) {
    if (algorithm.name === 'sliding_window_log') step.lrange(key, 0, -1)
    else step.get(key)
    step.call('PEXPIRETIME', key)
  }
  const replies = ((await step.exec()) ?? []).map(([error, reply]) => {
    if (error !== null) throw error
    return reply
  })
  const tail = replies.slice(-2 * keys.length)
  return {
    decisions: decodeReply(replies.at(-2 * keys.length - 1), calls),
    after: keys.map((_, at) => ({ value: tail[2 * at], expiresAtMs: Number(tail[2 * at + 1]) })),
    startedMs,
    completedMs: timeMs(await client.time()),
  }
}

/** A decision as Redis returns it: times are limited to the integers that it can count. */
function bounded({ admitted, remaining, over, ...times }: Decision) {
  const retryAfterUs =
    times.retryAfterUs === Infinity ? Infinity : Math.min(COUNT_MAX, times.retryAfterUs)
  return { admitted, remaining, over, resetUs: Math.min(COUNT_MAX, times.resetUs), retryAfterUs }
}

/** The reply of TIME in whole milliseconds. */
function timeMs([seconds, us]: readonly (number | string)[]): number {
  return Number(seconds) * 1000 + Math.floor(Number(us) / 1000)
}

function valueOf(algorithm: Algorithm, state: CounterState | undefined) {
  if (algorithm.name === 'sliding_window_log') return (state ?? []).map(String)
  return state === undefined ? null : decimals(state).join(' ')
}

/** Numbers as decimal strings, without an exponent. */
function decimals(state: CounterState): string[] {
  return state.map((number) => BigInt(number).toString())
}

/** Applies the calls to the model. Returns their decisions and the expiry of changed counters. */
function modelStep(
  calls: readonly (readonly CounterUpdate[])[],
  nowUs: number,
  stored: Map<string, Entry>,
) {
  const expiries = new Map<string, number>()
  const decisions = calls.map((call) => {
    const result = decideTogether(call, nowUs, (key) => stored.get(key)?.state)
    for (const [key, { state, expiresInUs }] of result.changes) {
      if (expiresInUs > 0) stored.set(key, { state, expiresAtUs: nowUs + expiresInUs })
      else stored.delete(key)
      expiries.set(key, expiresInUs)
    }
    return result.decisions.map(bounded)
  })
  return { decisions, expiries }
}

async function compare(
  keys: readonly { key: string; algorithm: Algorithm; limit: Limit }[],
  history: readonly {
    waitUs: number
    calls: { key: number; hits: number; veto: Veto }[][]
  }[],
) {
  const stored = new Map<string, Entry>()
  let nowUs = START_US
  for (const { waitUs, calls: shapes } of history) {
    nowUs += waitUs
    for (const [key, { expiresAtUs }] of stored) if (expiresAtUs <= nowUs) stored.delete(key)
    const calls = shapes.map((call) =>
      call.flatMap(({ key, hits, veto }) => {
        const counter = keys[key]
        return counter === undefined ? [] : [{ ...counter, hits, veto, isPerSecond: false }]
      }),
    )
    const { decisions, after, startedMs, completedMs } = await runStep({
      calls,
      nowUs,
      stored,
      keys,
    })
    const model = modelStep(calls, nowUs, stored)
    expect(decisions.map((call) => call.map(bounded))).toEqual(model.decisions)
    keys.forEach(({ key, algorithm }, at) => {
      const state = stored.get(key)?.state
      expect(after[at]?.value).toEqual(valueOf(algorithm, state))
      if (state === undefined || state.length === 0) return
      const expiresInUs = model.expiries.get(key) ?? LONG_MS * 1000
      const ttlMs = Math.ceil(Math.min(COUNT_MAX, expiresInUs) / 1000)
      const setAtMs = (after[at]?.expiresAtMs ?? 0) - ttlMs
      expect(setAtMs).toBeGreaterThanOrEqual(startedMs - 1)
      expect(setAtMs).toBeLessThanOrEqual(completedMs + 1)
    })
  }
}

const seed = newSeed()
process.stdout.write(`script, seed ${String(seed)}\n`)

describe('over random histories', () => {
  test.each(algorithms.map((algorithm) => [algorithm.name, algorithm] as const))(
    '%s decides in Redis as in TypeScript',
    async (_, algorithm) => {
      const property = fc.asyncProperty(limits, histories(1), async (shape, history) => {
        const limit = limitOf(algorithm, shape)
        await compare([{ key: 'one', algorithm, limit }], history)
      })
      await fc.assert(property, { seed, numRuns: 60 })
    },
    TEST_MS_MAX,
  )

  test(
    'calls of several updates, with any algorithms and vetoes, are decided as in TypeScript',
    async () => {
      const shapes = fc.array(limits, { minLength: 6, maxLength: 6 })
      const property = fc.asyncProperty(shapes, histories(6), async (limitShapes, history) => {
        const keys = limitShapes.flatMap((shape, at) => {
          const algorithm = algorithms[at % algorithms.length]
          if (algorithm === undefined) return []
          return [{ key: `key ${String(at)}`, algorithm, limit: limitOf(algorithm, shape) }]
        })
        await compare(keys, history)
      })
      await fc.assert(property, { seed, numRuns: 100 })
    },
    TEST_MS_MAX,
  )
})

test('hits of a log expire exactly at the end of the window', async () => {
  const algorithm = algorithms.find(({ name }) => name === 'sliding_window_log')
  if (algorithm === undefined) throw new Error('no algorithm is called sliding_window_log')
  const limit = { requests: 10, windowUs: 4_000_000, burst: 10, denyConsumes: false }
  const hit = { key: 0, hits: 1, veto: 'alone' as const }
  const waitsUs = [0, 1_000_000, 1_000_000, 1_000_000, 1_000_000, 2_000_000]
  const history = waitsUs.map((waitUs) => ({ waitUs, calls: [[hit]] }))
  await compare([{ key: 'one', algorithm, limit }], history)
})
