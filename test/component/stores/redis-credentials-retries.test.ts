// What is retried while credentials may rotate, and what is not: hits of a Redis that hangs, and
// refunds. Reconnecting to a Redis that drops each connection, and errors of AUTH.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { parseConfig } from '../../../src/config/config.ts'
import { RECONNECT_MS_MAX } from '../../../src/stores/redis/connection-options.ts'
import { connectRedis } from '../../../src/stores/redis/connection.ts'
import { createRedisCounterStore } from '../../../src/stores/redis/counter-store.ts'
import { retryCommands } from '../../../src/stores/redis/retry-commands.ts'
import { planRedis, redisSettings } from '../../../src/stores/redis/settings.ts'
import { describeError } from '../../../src/telemetry/log.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import { type MountedSecret, mountSecret } from '../../kit/mounted-secret.ts'
import {
  consumeOne,
  createStore,
  failureOf,
  newUpdate,
  reconnectMsMax,
} from '../../kit/ratelimit/redis-use.ts'
import { waitFor } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 400_000 // Redis may have to be installed
const STORM_MS = 1000
/** Without a growing delay, Redis gets more than 50 connections a second. */
const STORM_CONNECTIONS_MAX = 25

let server: RedisServer
let proxy: FaultProxy
let secret: MountedSecret

beforeEach(async () => {
  server = await startRedis(['--requirepass', 'first'])
  proxy = await startFaultProxy({ to: { host: '127.0.0.1', port: server.port } })
  secret = await mountSecret({ auth: 'first' })
}, SETUP_MS_MAX)
afterEach(async () => {
  await proxy.close()
  await server.close()
  await secret.remove()
})

/** A store behind the proxy, whose Redis knows the script. */
async function openStore(timeout: string, options: { readonly reconnectMsMax?: number } = {}) {
  const { main } = planRedis(
    parseConfig(redisSettings, {
      REDIS_URL: `127.0.0.1:${proxy.port}`,
      REDIS_AUTH_FILE: secret.pathOf('auth'),
      REDIS_TIMEOUT: timeout,
    }),
  )
  const { promise: lost, resolve: onDown } = Promise.withResolvers<unknown>()
  const connection = connectRedis({ ...main, ...options }, { onUp: () => undefined, onDown })
  const store = createRedisCounterStore({ connection, keyPrefix: 'c:' })
  await waitFor('Redis', () => connection.isUp())
  await consumeOne(store, newUpdate())
  return { store, connection, lost }
}

/** A reply of the script is a list; the handshake has none. */
const isList = (message: Buffer) => message.toString('latin1').startsWith('*')

test('a call to a Redis that does not reply is counted once', async () => {
  const { store, connection } = await openStore('1s')
  const update = newUpdate()
  proxy.dropResponses({ matches: isList })
  await failureOf(store.consume([update]))
  await waitFor('the next connection', () => connection.isUp())
  await proxy.heal()
  await waitFor('the next connection', () => connection.isUp())
  expect(await consumeOne(store, { ...update, hits: 0 })).toMatchObject({ remaining: 9 })
  store.close()
})

test.each([
  ['hits are retried', 2, 6],
  ['a refund is not', -1, 9],
])('after Redis has closed the connection, %s', async (_, hits, remaining) => {
  const { store, connection } = await openStore('5s', { reconnectMsMax })
  const update = newUpdate('fixed_window')
  await consumeOne(store, { ...update, hits: hits < 0 ? 2 : 0 })
  proxy.dropResponses({ count: 1, matches: isList })
  const settled = Promise.allSettled([store.consume([{ ...update, hits }])])
  await waitFor('the reply', () => proxy.droppedResponses() === 1)
  proxy.resetConnections()
  const [result] = await settled
  expect(result.status).toBe(hits < 0 ? 'rejected' : 'fulfilled')
  await waitFor('the next connection', () => connection.isUp())
  expect(await consumeOne(store, { ...update, hits: 0 })).toMatchObject({ remaining })
  store.close()
})

test('a call whose AUTH hangs fails within the time for retries', async () => {
  const { store } = await openStore('20s')
  const admin = clientOf(server.port, { password: 'first' })
  await admin.acl('SETUSER', 'default', '-evalsha')
  proxy.dropResponses({ matches: (message) => message.toString('latin1').startsWith('+OK') })
  const { error, tookMs } = await failureOf(store.consume([newUpdate()]))
  expect(error.message).toContain('NOPERM')
  expect(proxy.droppedResponses()).toBe(1) // that of AUTH
  expect(tookMs).toBeLessThan(5 * RECONNECT_MS_MAX)
  store.close()
  admin.disconnect()
})

test('a command that waits for the next connection fails at close', async () => {
  const { connection, store, lost } = await openStore('5s')
  await proxy.stopListening()
  await lost
  for (let turn = 0; turn < 5; turn++) await nextTurn() // the driver waits until it reconnects
  const settled = Promise.allSettled([connection.ping()])
  store.close()
  let turns = 0
  const counting = (async () => {
    for (; turns < 50; turns++) await nextTurn()
  })()
  const [result] = await settled
  expect(turns).toBeLessThan(50) // it has not waited for RECONNECT_MS_MAX
  expect(result.status).toBe('rejected')
  await counting
})

test.each([
  ['Connection is closed.', 2],
  ['Too many Cluster redirections. Last error: Error: Connection is closed.', 2],
  ['Too many Cluster redirections. Last error: ReplyError: MOVED 1 127.0.0.1:2', 2],
  ['ERR unknown command', 1],
])('after the error %s, a command is sent %i times', async (message, times) => {
  const client = clientOf(server.port, { password: 'first' })
  await waitFor('Redis', () => client.status === 'ready')
  const reloads = { renew: () => Promise.resolve(false), stop: () => undefined }
  const { run } = retryCommands({ client, reloads, options: { timeoutMs: 5000, reconnectMsMax } })
  let sent = 0
  const send = () => {
    sent += 1
    return sent === 1 ? Promise.reject(new Error(message)) : client.ping()
  }
  const [result] = await Promise.allSettled([run(send)])
  expect([result.status, sent]).toEqual([times === 1 ? 'rejected' : 'fulfilled', times])
  client.disconnect()
})

test('reconnecting slows down while Redis accepts connections but no writes', async () => {
  const admin = clientOf(server.port, { password: 'first' })
  const { store, events } = createStore(server.port, { auth: { password: 'first' } })
  await waitFor('Redis', () => events.includes('up'))
  await admin.replicaof('127.0.0.1', await freePort())
  await admin.config('RESETSTAT')
  const endMs = performance.now() + STORM_MS
  while (performance.now() < endMs) await failureOf(store.consume([newUpdate()]))
  const stats = /total_connections_received:(\d+)/.exec(await admin.info('stats'))
  expect(Number(stats?.[1])).toBeLessThan(STORM_CONNECTIONS_MAX)
  store.close()
  admin.disconnect()
})

test('errors of a Redis without AUTH do not contain the password', async () => {
  const renamed = await startRedis(['--rename-command', 'AUTH', ''])
  const errors: Error[] = []
  const target = { kind: 'single' as const, host: '127.0.0.1', port: renamed.port }
  const options = { target, database: 0, timeoutMs: 1000, auth: { password: 'hunter2' } }
  const onDown = (error: Error) => errors.push(error)
  const connection = connectRedis(options, { onUp: () => undefined, onDown })
  await waitFor('the error', () => errors.length > 0)
  connection.close()
  await renamed.close()
  const described = JSON.stringify(errors.map(describeError))
  expect(described).toContain('unknown command')
  expect(described).not.toContain('hunter2')
})
