// The queue to the writer thread while the thread hangs, fails or stops. The thread is a fake: the
// tests in test/component/stores use the real one.
import { EventEmitter } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { type GroupResult, startWriterThread, Writer } from './writer.ts'

const DEADLINE_MS = 2500

let thread: EventEmitter
let posted: unknown[]
let reports: unknown[][]
let metrics: ReturnType<typeof createMetrics>
let writer: Writer
let watch: ConstructorParameters<typeof Writer>[1]['watch']

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] })
  posted = []
  reports = []
  const report =
    (name: string) =>
    (...args: unknown[]) => {
      reports.push([name, ...args])
    }
  thread = Object.assign(new EventEmitter(), {
    postMessage: (message: unknown) => posted.push(message),
    terminate: report('terminate'),
  })
  metrics = createMetrics()
  watch = {
    succeeded: report('succeeded'),
    failed: report('failed'),
    writerStopped: report('writerStopped'),
    restricted: report('restricted'),
  }
  writer = new Writer(thread as unknown as Worker, { metrics, watch })
})
afterEach(() => {
  jest.useRealTimers()
})

/** Advances the fake clock between two turns of the event loop, in which groups are sent. */
const advance = async (ms: number) => {
  await turn()
  await jest.advanceTimersByTimeAsync(ms)
  await turn()
}
const turn = () => new Promise((resolve) => setImmediate(resolve))
/** Runs an operation; resolves to its row, or to the message and outcome of its error. */
const run = (pool = 'p') =>
  writer.run('readPool', { pool }).then(
    (row) => row?.['pool'],
    (error: unknown) => {
      const { message, outcome } = error as { message: string; outcome: string }
      return `${message}: ${outcome}`
    },
  )
const reply = (result: GroupResult) => thread.emit('message', result)
const rowsOf = (...pools: readonly string[]): GroupResult => ({
  rows: pools.map((pool) => ({ pool })),
  wrote: true,
  tookMs: 5,
})
const settled = async (results: readonly Promise<unknown>[]) => {
  const pending = Symbol('pending')
  return Promise.all(results.map((one) => Promise.race([one, Promise.resolve(pending)])))
}

test('a thread that has not started after 30 s is an error', async () => {
  const starting = startWriterThread(':memory:', { metrics, watch })
  const rejected = expect(starting).rejects.toThrow(
    'the writer thread did not start within 30000 ms',
  )
  jest.advanceTimersByTime(30_000)
  await rejected
})

test('a thread that fails at its start is an error', async () => {
  jest.useRealTimers()
  const starting = startWriterThread(':memory:', { metrics, watch }) // which has no tables
  await expect(starting).rejects.toThrow('no such table')
})

test('writes of one turn are one group, later ones wait for its reply', async () => {
  const first = [run('a'), run('b')]
  await advance(0)
  const second = run('c')
  await advance(0)
  expect(posted).toEqual([
    [
      ['readPool', 'a'],
      ['readPool', 'b'],
    ],
  ])
  reply(rowsOf('a', 'b'))
  expect(await Promise.all(first)).toEqual(['a', 'b'])
  expect(posted.slice(1)).toEqual([[['readPool', 'c']]])
  reply({ rows: [{ pool: 'c' }], wrote: false, tookMs: 1 })
  expect(await second).toBe('c')
  expect(reports).toEqual([['succeeded', 'write']])
  const sumOf = async (name: 'sqliteGroup' | 'sqliteCommitSeconds') => {
    const { values } = await metrics[name].get()
    return values.find(({ metricName }) => metricName.endsWith('_sum'))?.value
  }
  expect([await sumOf('sqliteGroup'), await sumOf('sqliteCommitSeconds')]).toEqual([3, 0.006])
})

test('a group has at most 1,000 writes, and at most 10,000 writes wait', async () => {
  const all = Array.from({ length: 10_001 }, () => run())
  expect(await all.at(-1)).toBe('too many pending writes: not-done')
  await advance(0)
  expect(posted.map((group) => (group as unknown[]).length)).toEqual([1000])
  const next = run()
  reply(rowsOf(...Array.from({ length: 1000 }, () => 'p')))
  expect(posted.map((group) => (group as unknown[]).length)).toEqual([1000, 1000])
  thread.emit('exit')
  expect(await next).toBe('the writer thread has stopped: not-done')
})

test('a failed group fails all of its writes, with its outcome', async () => {
  const group = [run('a'), run('b')]
  await advance(0)
  reply({ failure: 'disk is full', outcome: 'not-done' })
  const expected = 'SQLite: disk is full: not-done'
  expect(await Promise.all(group)).toEqual([expected, expected])
  expect(reports).toEqual([['failed', 'write', 'disk is full']])
})

test('if the thread hangs, writes fail until it replies', async () => {
  const sent = run()
  await advance(0)
  const waiting = run()
  await advance(DEADLINE_MS - 1)
  expect((await settled([sent, waiting])).map((one) => typeof one)).toEqual(['symbol', 'symbol'])
  await advance(1)
  expect(await sent).toBe('SQLite did not respond within the deadline: unknown')
  expect(await waiting).toBe('SQLite does not respond: not-done')
  expect(await run()).toBe('SQLite does not respond: not-done')
  expect(reports).toEqual([['failed', 'write', 'SQLite did not respond within the deadline']])
  reply(rowsOf('p'))
  const next = run('q')
  await advance(0)
  reply(rowsOf('q'))
  expect(await next).toBe('q')
  await advance(10 * DEADLINE_MS)
  expect(reports.slice(1)).toEqual([
    ['succeeded', 'write'],
    ['succeeded', 'write'],
  ])
})

test.each([
  ['error', new Error('broken'), 'broken'],
  ['error', 'broken', 'broken'],
  ['exit', 0, 'the writer thread has stopped'],
])('after the event %j of the thread (%j) all writes fail', async (event, cause, message) => {
  const sent = run()
  await advance(0)
  const waiting = run()
  thread.emit(event, cause)
  expect([await sent, await waiting]).toEqual([`${message}: unknown`, `${message}: not-done`])
  expect(await run()).toBe(`${message}: not-done`)
  thread.emit('exit')
  await advance(DEADLINE_MS)
  expect(reports).toEqual([['writerStopped', new Error(message)]])
  await writer.close()
  expect(posted).toHaveLength(1)
})

test('a close waits for all writes and for the exit of the thread', async () => {
  const first = run('a')
  await advance(0)
  const second = run('b')
  let isClosed = false
  const closed = writer.close().then(() => (isClosed = true))
  reply(rowsOf('a'))
  await advance(0)
  expect([await first, posted.length]).toEqual(['a', 2])
  reply(rowsOf('b'))
  await advance(0)
  expect([await second, posted[2], isClosed]).toEqual(['b', 'close', false])
  thread.emit('exit')
  await closed
  await advance(DEADLINE_MS)
  expect(reports.map(([name]) => name)).toEqual(['succeeded', 'succeeded'])
  expect(await run()).toBe('the writer thread has stopped: not-done')
})

test('a close terminates a thread that does not exit within 2.5 s', async () => {
  const closed = writer.close()
  await advance(DEADLINE_MS - 1)
  expect([posted, reports]).toEqual([['close'], []])
  await advance(1)
  expect(reports).toEqual([['terminate']])
  thread.emit('exit')
  await closed
})

test('a close terminates a thread that hangs immediately', async () => {
  const sent = run()
  await advance(DEADLINE_MS)
  expect(await sent).toMatch(/unknown$/)
  const closed = writer.close()
  await advance(0)
  expect(reports.slice(1)).toEqual([['terminate']])
  thread.emit('exit')
  await closed
})

test('a close terminates a thread that hangs during the close', async () => {
  const sent = run()
  await advance(1000)
  const closed = writer.close()
  await advance(DEADLINE_MS - 1000)
  expect(await sent).toMatch(/unknown$/)
  expect(reports.map(([name]) => name)).toEqual(['failed', 'terminate'])
  thread.emit('exit')
  await closed
})
