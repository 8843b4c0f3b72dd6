// The workaround for leaked connections, on fakes of the driver's client, control connection and
// hosts: what is closed, and in which order.
import { EventEmitter } from 'node:events'
import { beforeEach, expect, test } from '@jest/globals'
import { preventConnectionLeaks } from './workaround-connection-leaks.ts'

type PatchedClient = Parameters<typeof preventConnectionLeaks>[0]
type Options = Parameters<typeof preventConnectionLeaks>[1]

let steps: unknown[]
let debugLog: unknown[]
let isClosed: boolean

const turn = () => new Promise((resolve) => setImmediate(resolve))

const hostOf = (name: string, shutDown: () => Promise<void> = () => Promise.resolve()) => ({
  pool: new EventEmitter(),
  shutdown: (waitForPending: boolean) => {
    steps.push(`${name}: shutdown(${waitForPending})`)
    return shutDown()
  },
})

/** A patched client with these hosts; its own functions record their calls. */
function open(hosts: readonly object[] = [hostOf('a'), hostOf('b')]) {
  const refreshes: (() => void)[] = []
  const control = {
    connection: { close: () => steps.push('connection: close()') } as object | null,
    hosts: { values: () => hosts },
    _refresh: () =>
      new Promise<void>((resolve) => {
        refreshes.push(resolve)
      }),
    _borrowFirstConnection(...given: unknown[]) {
      steps.push(['borrow', this === control, ...given])
      return Promise.resolve()
    },
    shutdown: () => steps.push('control: shutdown()'),
  }
  let onShutDown: () => void = () => undefined
  const client = Object.assign(new EventEmitter(), {
    controlConnection: control,
    shutdown() {
      steps.push('client: shutdown()')
      return new Promise<void>((resolve) => {
        onShutDown = resolve
      })
    },
  })
  const leakFree = preventConnectionLeaks(client as unknown as PatchedClient, {
    log: { debug: (...line: unknown[]) => debugLog.push(line) } as Options['log'],
    isClosed: () => isClosed,
  })
  return {
    ...{ client, control, leakFree },
    /** Completes the shutdown of the driver's client. */
    completeShutdown: () => {
      onShutDown()
    },
    /** Refreshes the nodes once. */
    refresh: async () => {
      const refreshed = control._refresh()
      refreshes.pop()?.()
      await refreshed
    },
  }
}

beforeEach(() => {
  steps = []
  debugLog = []
  isClosed = false
})

const HOSTS_CLOSED = ['connection: close()', 'a: shutdown(false)', 'b: shutdown(false)']

test('a shutdown stops the control connection, the client and then each host', async () => {
  const { leakFree, completeShutdown } = open()
  const closing = leakFree.shutdown()
  await turn()
  expect(steps).toEqual(['control: shutdown()', 'client: shutdown()'])
  completeShutdown()
  await closing
  expect(steps).toEqual(['control: shutdown()', 'client: shutdown()', ...HOSTS_CLOSED])
  expect(debugLog).toEqual([])
})

test('a shutdown resolves once every host is shut down, also if another one fails', async () => {
  const err = new Error('socket')
  let completeHost: () => void = () => undefined
  const slow = new Promise<void>((resolve) => {
    completeHost = resolve
  })
  const { leakFree, completeShutdown } = open([
    hostOf('a', () => Promise.reject(err)),
    hostOf('b', () => slow),
  ])
  const closing = leakFree.shutdown().then(() => steps.push('closed'))
  completeShutdown()
  await turn()
  expect(steps.slice(2)).toEqual(HOSTS_CLOSED)
  completeHost()
  await closing
  expect(steps.at(-1)).toBe('closed')
  expect(debugLog).toEqual([[{ err }, 'Cassandra node not disconnected cleanly']])
})

test('a shutdown without a connection, and of hosts without a pool, completes', async () => {
  const { control, leakFree, completeShutdown } = open([{}])
  control.connection = null
  const closing = leakFree.shutdown()
  completeShutdown()
  await closing
  expect([steps, debugLog]).toEqual([['control: shutdown()', 'client: shutdown()'], []])
})

test('the hosts of a refresh after a close are shut down once the shutdown starts', async () => {
  const { leakFree, completeShutdown, refresh } = open()
  await refresh()
  isClosed = true
  await refresh() // the statements in flight still use the hosts
  expect(steps).toEqual([])
  const closing = leakFree.shutdown()
  await refresh() // before the client is shut down
  expect(steps).toEqual(['control: shutdown()', 'client: shutdown()', ...HOSTS_CLOSED])
  completeShutdown()
  await closing
  steps = []
  await refresh()
  expect(steps).toEqual(HOSTS_CLOSED)
})

test('an unusable control connection is closed before the next one is opened', async () => {
  const { control } = open()
  const contactPoints = ['a', 'b']
  await control._borrowFirstConnection(contactPoints)
  expect(steps).toEqual(['connection: close()', ['borrow', true, contactPoints]])
  control.connection = null
  steps = []
  await control._borrowFirstConnection(contactPoints)
  expect(steps).toEqual([['borrow', true, contactPoints]])
})

test('a removed host is shut down, and its pool too if it reconnects', () => {
  const { client } = open()
  const host = hostOf('a')
  client.emit('hostRemove', host)
  expect(steps).toEqual(['a: shutdown(true)'])
  host.pool.emit('close')
  expect(steps).toEqual(['a: shutdown(true)', 'a: shutdown(false)'])
})

test('a removed host whose pool closes immediately is shut down too', () => {
  const { client } = open()
  const pool = new EventEmitter()
  const shutdown = (waitForPending: boolean) => {
    steps.push(waitForPending)
    if (waitForPending) pool.emit('close') // the pool has no connection to drain
    return Promise.resolve()
  }
  client.emit('hostRemove', { pool, shutdown })
  expect(steps).toEqual([true, false])
})

test('a removed host without a pool or a shutdown is tolerated', () => {
  const { client } = open()
  const pool = new EventEmitter()
  client.emit('hostRemove', {})
  client.emit('hostRemove', { pool })
  pool.emit('close')
  const { shutdown } = hostOf('a')
  client.emit('hostRemove', { shutdown })
  expect(steps).toEqual(['a: shutdown(true)'])
})

test('a driver without a control connection is an error', () => {
  const client = new EventEmitter() as unknown as PatchedClient
  const options = { log: { debug: () => undefined }, isClosed: () => false }
  expect(() => preventConnectionLeaks(client, options)).toThrow(
    'the driver has no control connection to patch',
  )
})
