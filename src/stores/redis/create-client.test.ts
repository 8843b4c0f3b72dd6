// The delays before the driver reconnects. Its events are emitted by the test: nothing connects.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { Redis } from 'ioredis'
import type { RedisConnectionOptions } from './connection-options.ts'
import { createClient } from './create-client.ts'

let client: Redis | undefined
let nowMs: number

beforeEach(() => {
  nowMs = 1000
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
  jest.spyOn(Math, 'random').mockReturnValue(1) // the longest delays
})
afterEach(() => {
  client?.disconnect()
  jest.restoreAllMocks()
})

/** Creates a client; returns the function that computes the delay of the next retry. */
function open(more: Partial<RedisConnectionOptions> = {}): () => unknown {
  const target = { kind: 'single', host: '127.0.0.1', port: 1 } as const
  const created = createClient({ target, database: 0, timeoutMs: 1000, ...more })
  if (!(created instanceof Redis)) throw new Error('a Cluster was created')
  client = created.on('error', () => undefined)
  return () => created.options.retryStrategy?.(1) // the driver's own count is not used
}
const delays = (next: () => unknown, count: number) => Array.from({ length: count }, next)

test('delays double up to a quarter of a second', () => {
  expect(delays(open(), 7)).toEqual([20, 40, 80, 160, 250, 250, 250])
})

test('delays are at least half of that', () => {
  jest.spyOn(Math, 'random').mockReturnValue(0)
  expect(delays(open(), 3)).toEqual([10, 20, 40])
})

test.each([
  [1000, 80],
  [1001, 20],
])('a connection that was ready for %d ms: the next delay is %d ms', (ms, expected) => {
  const next = open()
  delays(next, 2)
  client?.emit('ready')
  nowMs += ms
  expect(delays(next, 2)).toEqual([expected, 2 * expected])
})

test.each([
  [true, 2],
  [false, 20],
])('credentials in files: %j, the first delay after a stable connection: %d ms', (has, first) => {
  const read = () => ({}) as RedisConnectionOptions
  const next = open({ secretFiles: { paths: [], hasCredentials: has, read } })
  expect(delays(next, 2)).toEqual([20, 40])
  client?.emit('ready')
  nowMs += 1001
  expect(delays(next, 3)).toEqual([first, 40, 80])
})
