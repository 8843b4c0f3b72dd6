// The commands of the link cache: which calls share a command, how many may wait, and failures. The
// connection is a fake; test/component/stores uses real servers.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import {
  type FakeRedisConnection,
  openFakeRedis,
} from '../../../test/kit/ratelimit/fake-redis-connection.ts'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import {
  CALLS_IN_FLIGHT_MAX,
  type CommandsWithBreaker,
  createLinkCacheCommands,
} from './link-cache-commands.ts'

let redis: FakeRedisConnection
let metrics: Metrics
let commands: CommandsWithBreaker

const open = (isCluster = false, commandMsMax?: number) => {
  redis = openFakeRedis(isCluster)
  metrics = createMetrics()
  commands = createLinkCacheCommands({ connection: redis.connection, metrics, commandMsMax })
}
beforeEach(() => {
  open()
})
afterEach(() => commands.stop())

const failureOf = (call: Promise<unknown>) =>
  call.catch((error: unknown) => {
    const { message, outcome } = error as { message: string; outcome: string }
    return `${outcome}: ${message}`
  })
const UNAVAILABLE = 'the link cache is unavailable'
const failureCounts = async () => {
  const { values } = await metrics.linkCacheFailures.get()
  return Object.fromEntries(values.map(({ labels: { reason }, value }) => [String(reason), value]))
}
const unavailable = async () => (await metrics.linkCacheUnavailable.get()).values[0]?.value
const fill = { key: 'a', from: 'é', value: 'v', ms: 1000 }

test('the reads of one turn share a command, and so do the deletions', async () => {
  redis.reply = (command) => Promise.resolve(command.startsWith('mget') ? ['x', null] : 2)
  const calls = [commands.get('a'), commands.get('b'), commands.del('c'), commands.del('d')]
  expect(redis.called).toEqual([])
  expect(await Promise.all(calls)).toEqual(['x', null, null, null])
  expect(redis.called).toEqual(['mget a,b', 'del c,d'])
  expect(await commands.get('e')).toBe('x')
  expect(redis.called).toEqual(['mget a,b', 'del c,d', 'mget e'])
})

test('at most 128 keys share a command', async () => {
  redis.reply = (command) => Promise.resolve(command.split(' ')[1]?.split(',') ?? [])
  const keys = Array.from({ length: 130 }, (_, nth) => `k${nth}`)
  expect(await Promise.all(keys.map((key) => commands.get(key)))).toEqual(keys)
  const sent = [keys.slice(0, 128), keys.slice(128)]
  expect(redis.called).toEqual(sent.map((each) => `mget ${each.join()}`))
})

test('a turn of exactly 128 keys is one command', async () => {
  redis.reply = () => Promise.resolve([])
  await Promise.all(Array.from({ length: 128 }, () => commands.get('a')))
  expect(redis.called).toHaveLength(1)
})

test('on a Cluster, each key has its own command', async () => {
  open(true)
  redis.reply = (command) => Promise.resolve(command === 'get b' ? null : command)
  const calls = [commands.get('a'), commands.get('b'), commands.del('c')]
  expect(await Promise.all(calls)).toEqual(['get a', null, 'del c'])
})

test('an entry is set unless it exists, or replaces the value that it was read with', async () => {
  redis.reply = () => Promise.resolve(true)
  expect(await commands.putIfAbsent({ key: 'a', value: 'v', ms: 1000 })).toBe(true)
  expect(redis.called).toEqual(['set a v 1000'])
  redis.respond = () => Promise.resolve(1)
  expect(await commands.replace(fill)).toBe(true)
  redis.respond = () => Promise.resolve(0)
  expect(await commands.replace(fill)).toBe(false)
  expect(redis.sent.map(({ command, keys }) => [command, keys])).toEqual([
    ['evalsha', ['a']],
    ['evalsha', ['a']],
  ])
  expect(redis.sent[0]?.args.slice(3)).toEqual(['v', '1000'])
})

test('only an unknown script is sent with its source', async () => {
  redis.respond = ({ command }) =>
    command === 'eval' ? Promise.resolve(1) : Promise.reject(new Error('NOSCRIPT No matching'))
  expect(await commands.replace(fill)).toBe(true)
  redis.respond = () => Promise.reject(new Error('Connection is closed.'))
  expect(await failureOf(commands.replace(fill))).toBe(`unknown: ${UNAVAILABLE}`)
  expect(redis.sent.map(({ command }) => command)).toEqual(['evalsha', 'eval', 'evalsha'])
})

test('a failed read has changed nothing, a failed write may have', async () => {
  redis.reply = () => Promise.reject(new Error('READONLY'))
  const calls = [commands.get('a'), commands.get('b'), commands.del('c')]
  expect(await Promise.all(calls.map(failureOf))).toEqual([
    `not-done: ${UNAVAILABLE}`,
    `not-done: ${UNAVAILABLE}`,
    `unknown: ${UNAVAILABLE}`,
  ])
  expect(await failureOf(commands.putIfAbsent({ key: 'a', value: 'v', ms: 1 }))).toBe(
    `unknown: ${UNAVAILABLE}`,
  )
  expect(await failureCounts()).toEqual({ error: 3 })
})

test('without a connection nothing is sent', async () => {
  redis.isUp = false
  expect(await failureOf(commands.get('a'))).toBe(`not-done: ${UNAVAILABLE}`)
  expect([redis.called, await failureCounts()]).toEqual([[], { error: 1 }])
})

test('a command without a reply has a deadline; after five of them, nothing is sent', async () => {
  expect([commands.isOpen(), await unavailable()]).toEqual([false, 0])
  redis.reply = () => new Promise(() => undefined)
  for (let nth = 0; nth < 5; nth++) await failureOf(commands.get('a'))
  expect([commands.isOpen(), await unavailable()]).toEqual([true, 1])
  expect(await failureOf(commands.get('a'))).toBe(`not-done: ${UNAVAILABLE}`)
  const reads = redis.called.filter((command) => command.startsWith('mget')) // without probes
  expect([reads.length, await failureCounts()]).toEqual([5, { timeout: 5, unavailable: 1 }])
})

test.each([false, true])(
  'with 10,000 calls in flight, others fail at once (on a Cluster: %j)',
  async (isCluster) => {
    open(isCluster, 60_000) // on a slow machine, 10,000 failures take long
    const replied = Promise.withResolvers<unknown>()
    redis.reply = () => replied.promise
    const calls = Array.from({ length: CALLS_IN_FLIGHT_MAX }, () => failureOf(commands.get('a')))
    const full = `not-done: ${CALLS_IN_FLIGHT_MAX} calls are already waiting for the link cache`
    for (const call of [commands.get('b'), commands.del('b')]) {
      expect(await failureOf(call)).toBe(full)
    }
    expect(await failureOf(commands.replace(fill))).toBe(full)
    replied.reject(new Error('Connection is closed.'))
    await Promise.all(calls)
    redis.reply = () => Promise.resolve(isCluster ? 'x' : ['x'])
    expect(await commands.get('b')).toBe('x')
  },
)
