// How failed attempts to connect to Cassandra are logged.
import { createServer } from 'node:net'
import { afterEach, expect, jest, test } from '@jest/globals'
import { parseConfig } from '../../config/config.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { listenOn } from '../../../test/kit/ratelimit/xds-network.ts'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { type CassandraOptions, openCassandra } from './client.ts'
import { cassandraSettings } from './settings.ts'

const START_MS = 60_000
/** Nothing listens on this port. */
const UNREACHABLE_PORT = 1

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  jest.restoreAllMocks()
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

/** Starts to connect to this port of 127.0.0.1. */
function open(port: number, log: object, more: Partial<CassandraOptions> = {}) {
  const env = { CASSANDRA_CONTACT_POINTS: '127.0.0.1', CASSANDRA_PORT: String(port) }
  const cassandra = openCassandra({
    config: parseConfig(cassandraSettings, { ...env, CASSANDRA_LOCAL_DC: 'dc1' }),
    metrics: createMetrics(),
    log: log as CassandraOptions['log'],
    ...more,
  })
  cleanups.push(() => cassandra.close())
  return cassandra
}

/** Connects; resolves to the log after a warning and another failed attempt. */
async function logOf(
  port: number,
  given: Pick<CassandraOptions, 'startMsMax'> = {},
): Promise<string[]> {
  const log: string[] = []
  const logAs = (level: string) => (line: unknown) => log.push(`${level} ${line as string}`)
  const levels = { debug: () => undefined, info: logAs('info'), warn: logAs('warn') }
  let faults = 0
  const now = performance.now.bind(performance)
  let aheadMs = 0
  jest.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
  open(port, levels, { onFault: () => faults++, ...given })
  await waitFor('a failure', () => log.length > 0)
  aheadMs = START_MS // only now: on a busy machine, the first failure takes long
  await waitFor('the warning', () => log.some((line) => line.startsWith('warn')))
  const faultsBefore = faults
  await waitFor('another attempt', () => faults > faultsBefore)
  return log
}

const sentenceFor = (port: number) =>
  `Cassandra is unavailable at CASSANDRA_CONTACT_POINTS (127.0.0.1) on port ${port}`

test('an unreachable cluster is logged once at the start, and once as a warning', async () => {
  const sentence = sentenceFor(UNREACHABLE_PORT)
  expect(await logOf(UNREACHABLE_PORT)).toEqual([`info ${sentence}`, `warn ${sentence}`])
})

test('a caller sets how long a failure after the start is no warning', async () => {
  const log = await logOf(UNREACHABLE_PORT, { startMsMax: 0 })
  expect(log).toEqual([`warn ${sentenceFor(UNREACHABLE_PORT)}`])
})

test('a node that resets the connection at the first frame is a warning immediately', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
  const { port, close } = await listenOn(0, server)
  cleanups.push(close)
  expect(await logOf(port)).toEqual([`warn ${sentenceFor(port)}`])
})

test('before the first connection statements fail, and a close stops the attempts', async () => {
  let faults = 0
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined }
  const cassandra = open(UNREACHABLE_PORT, silent, { onFault: () => faults++ })
  await waitFor('a failure', () => faults > 0)
  const failure = { outcome: 'not-done', message: 'Cassandra is not connected' }
  await expect(cassandra.execute('scan', 'SELECT')).rejects.toMatchObject(failure)
  await expect(cassandra.changeSchema('CREATE')).rejects.toMatchObject(failure)
  expect([cassandra.isUp(), await cassandra.executeOnEach('SELECT')]).toEqual([false, []])
  await cassandra.close()
  expect([await cassandra.ready, cassandra.isUp()]).toEqual(['closed', false])
})

test('the signal of the process stops the attempts', async () => {
  const stopping = new AbortController()
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined }
  const cassandra = open(UNREACHABLE_PORT, silent, { signal: stopping.signal })
  stopping.abort()
  expect(await cassandra.ready).toBe('closed')
})
