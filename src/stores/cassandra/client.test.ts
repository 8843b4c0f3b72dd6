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

/** Connects; resolves to the log after a warning and another failed attempt. */
async function logOf(
  port: number,
  given: Pick<CassandraOptions, 'startMsMax'> = {},
): Promise<string[]> {
  const env = { CASSANDRA_CONTACT_POINTS: '127.0.0.1', CASSANDRA_PORT: String(port) }
  const log: string[] = []
  const logAs = (level: string) => (line: unknown) => log.push(`${level} ${line as string}`)
  const levels = { debug: () => undefined, info: logAs('info'), warn: logAs('warn') }
  let faults = 0
  const now = performance.now.bind(performance)
  let aheadMs = 0
  jest.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
  const cassandra = openCassandra({
    config: parseConfig(cassandraSettings, { ...env, CASSANDRA_LOCAL_DC: 'dc1' }),
    metrics: createMetrics(),
    log: levels as CassandraOptions['log'],
    onFault: () => faults++,
    ...given,
  })
  cleanups.push(() => cassandra.close())
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
