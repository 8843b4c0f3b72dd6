// Which failed commands are retried while credentials rotate, how often and how long. The client is
// a fake with the events of the driver; test/component/stores uses real servers.
import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { Cluster, type Redis } from 'ioredis'
import { retryCommands } from './retry-commands.ts'

const TIMEOUT_MS = 1000
const RECONNECT_MS = 200

class FakeClient extends EventEmitter {
  status = 'ready'
  stream = { writable: true }

  lose(): void {
    this.status = 'reconnecting'
    this.stream = { writable: false }
    this.emit('close')
  }

  connect(): void {
    this.status = 'ready'
    this.stream = { writable: true }
    this.emit('ready')
  }
}

let client: FakeClient
let renewed: unknown[]
let isAccepted: () => Promise<boolean>

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick'] })
  client = new FakeClient()
  renewed = []
  isAccepted = () => Promise.resolve(true)
})
afterEach(() => {
  jest.useRealTimers()
})

const start = (bounds: object = { reconnectMsMax: RECONNECT_MS }, cluster?: Cluster) =>
  retryCommands({
    client: cluster ?? (client as unknown as Redis),
    reloads: {
      renew(error) {
        renewed.push((error as Error).message)
        return isAccepted()
      },
    },
    options: { timeoutMs: TIMEOUT_MS, ...bounds },
  })
/** A command that fails with each of the messages, and then succeeds; counts its attempts. */
const failing = (...messages: readonly string[]) => {
  const attempts: number[] = []
  const send = () => {
    attempts.push(performance.now())
    const message = messages[attempts.length - 1]
    return message === undefined ? Promise.resolve('ok') : Promise.reject(new Error(message))
  }
  return { send, attempts }
}
const resultOf = (result: Promise<unknown>) =>
  result.catch((error: unknown) => (error as Error).message)
const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms)
const WRONG = 'WRONGPASS invalid username-password pair'
const CLOSED = 'Connection is closed.'

test('a command that succeeds is sent once', async () => {
  const { send, attempts } = failing()
  expect([await start().run(send), attempts.length, renewed]).toEqual(['ok', 1, []])
})

test.each(['NOAUTH Authentication required.', WRONG, 'NOPERM no permissions'])(
  'a command that fails with %j is retried after the credentials are read',
  async (message) => {
    const { send, attempts } = failing(message)
    expect([await start().run(send), attempts.length, renewed]).toEqual(['ok', 2, [message]])
  },
)

test('a command is not retried if Redis also rejects the credentials that are read', async () => {
  isAccepted = () => Promise.resolve(false)
  const { send, attempts } = failing(WRONG)
  expect([await resultOf(start().run(send)), attempts.length]).toEqual([WRONG, 1])
})

test('a command is sent at most three times', async () => {
  const { send, attempts } = failing(WRONG, CLOSED, WRONG, WRONG)
  expect([await resultOf(start().run(send)), attempts.length]).toEqual([WRONG, 3])
  expect(renewed).toEqual([WRONG])
})

test.each(['ERR syntax error', 'LOADING Redis is loading', 'MOVED 1 a:1'])(
  'a command that fails with %j is not retried',
  async (message) => {
    const { send, attempts } = failing(message)
    expect([await resultOf(start().run(send)), attempts.length]).toEqual([message, 1])
    expect(renewed).toEqual([])
  },
)

test('a command that may not be sent twice is not retried, and waits for nothing', async () => {
  const { send, attempts } = failing(WRONG)
  const { run } = start()
  expect(await resultOf(run(send, { isRetryable: false }))).toBe(WRONG)
  client.lose()
  expect(await resultOf(run(send, { isRetryable: false }))).toBe('ok')
  expect([attempts.length, renewed]).toEqual([2, []])
})

test.each([CLOSED, 'Reached the max retries', "Stream isn't writeable", 'Too many Cluster redir'])(
  'a command that fails with %j is retried on the next connection',
  async (message) => {
    const full = message.startsWith('Too')
      ? 'Too many Cluster redirections. Last error: x'
      : message
    const { send, attempts } = failing(full)
    const { run } = start()
    client.lose()
    client.status = 'ready' // for a moment, the stream is closed already
    const result = run(send)
    await advance(RECONNECT_MS - 50)
    expect(attempts).toHaveLength(1)
    client.connect()
    expect([await result, attempts.length, renewed]).toEqual(['ok', 2, []])
  },
)

test('a command waits for the next connection at most `reconnectMsMax`', async () => {
  const { send, attempts } = failing(CLOSED)
  const { run, isReconnecting } = start()
  client.connect()
  expect(isReconnecting()).toBe(false)
  client.lose()
  expect(isReconnecting()).toBe(true)
  const waiting = resultOf(run(send))
  await advance(RECONNECT_MS - 1)
  expect([attempts.length, isReconnecting()]).toEqual([0, true])
  await advance(1)
  expect(await waiting).toBe('Redis is not connected')
  expect([attempts.length, isReconnecting()]).toEqual([0, false])
  const next = resultOf(run(send)) // sent at once: the driver fails it
  expect(attempts).toHaveLength(1)
  await advance(RECONNECT_MS)
  expect(await next).toBe(CLOSED)
})

test('a command that waits is sent when the connection is ready', async () => {
  const { send, attempts } = failing()
  const { run } = start()
  client.connect()
  client.lose()
  const waiting = [run(send), run(send)]
  await advance(100)
  expect(['ready', 'end'].map((name) => client.listenerCount(name))).toEqual([2, 1])
  expect([attempts.length, jest.getTimerCount()]).toEqual([0, 1])
  client.connect()
  expect([await Promise.all(waiting), attempts.length]).toEqual([['ok', 'ok'], 2])
  expect(['ready', 'end'].map((name) => client.listenerCount(name))).toEqual([1, 0])
  expect(jest.getTimerCount()).toBe(0)
  await advance(RECONNECT_MS)
})

test('the time of a call includes the time before the command', async () => {
  const { send, attempts } = failing(CLOSED)
  const { run } = start()
  client.connect()
  client.lose()
  const startedMs = performance.now() - RECONNECT_MS
  client.status = 'ready'
  expect(await resultOf(run(send, { startedMs }))).toBe(CLOSED)
  expect(attempts).toHaveLength(1)
})

test('a retry that waits for credentials too long fails with the first error', async () => {
  isAccepted = () => new Promise(() => undefined)
  const { send, attempts } = failing(WRONG)
  const result = resultOf(start().run(send))
  await advance(RECONNECT_MS)
  expect([await result, attempts.length]).toEqual([WRONG, 1])
})

test('the timeout of commands bounds the wait', async () => {
  isAccepted = () => new Promise(() => undefined)
  const settled: unknown[] = []
  const result = start({ reconnectMsMax: 5000 }).run(failing(WRONG).send)
  void resultOf(result).then((value) => settled.push(value))
  await advance(TIMEOUT_MS - 1)
  expect(settled).toEqual([])
  await advance(1)
  expect(settled).toEqual([WRONG])
})

test('by default, a command waits 250 ms', async () => {
  const { run } = start({})
  client.connect()
  client.lose()
  const settled: unknown[] = []
  void resultOf(run(failing().send)).then((value) => settled.push(value))
  await advance(249)
  expect(settled).toEqual([])
  await advance(1)
  expect(settled).toEqual(['Redis is not connected'])
})

test('a command that timed out is not sent twice', async () => {
  const { run, isReconnecting } = start()
  client.connect()
  let attempts = 0
  const send = () => {
    attempts++
    client.emit('error', new Error('Socket timeout. Expecting data, but didn’t receive any'))
    client.lose()
    return Promise.reject(new Error(CLOSED))
  }
  expect([await resultOf(run(send)), attempts, isReconnecting()]).toEqual([CLOSED, 1, false])
  client.emit('error', new Error('ECONNRESET')) // another error does not count
  client.connect()
  const other = failing(WRONG)
  expect([await run(other.send), other.attempts.length]).toEqual(['ok', 2])
})

test('before the first connection, commands wait for nothing', async () => {
  client.status = 'connecting'
  const { isReconnecting, run } = start()
  expect(isReconnecting()).toBe(false)
  client.lose()
  expect([isReconnecting(), await run(failing().send)]).toEqual([false, 'ok'])
})

test.each(['end', 'stop'])('after %j, waiting commands fail and are not retried', async (how) => {
  const { send, attempts } = failing(WRONG)
  const { run, stop } = start()
  client.connect()
  client.lose()
  const waiting = resultOf(run(send))
  await advance(0)
  if (how === 'stop') stop()
  else client.emit('end')
  if (how === 'end') await advance(0)
  expect(await waiting).toBe(how === 'stop' ? 'Redis is not connected' : 'ok')
  expect(attempts).toHaveLength(how === 'stop' ? 0 : 2)
})

test('a Cluster is ready while any node is, and reports timeouts of nodes', async () => {
  const cluster = new Cluster([], { lazyConnect: true })
  cluster.status = 'ready'
  const { run } = start({}, cluster)
  const { send, attempts } = failing(CLOSED)
  expect([await run(send), attempts.length]).toEqual(['ok', 2])
  let sent = 0
  const hanging = () => {
    sent++
    cluster.emit('node error', new Error('Socket timeout'))
    return Promise.reject(new Error(CLOSED))
  }
  expect([await resultOf(run(hanging)), sent]).toEqual([CLOSED, 1])
  cluster.status = 'connecting'
  const other = failing(CLOSED)
  const waiting = run(other.send)
  await advance(100)
  expect(other.attempts).toHaveLength(1)
  cluster.emit('ready')
  expect([await waiting, other.attempts.length]).toEqual(['ok', 2])
})
