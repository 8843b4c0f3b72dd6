// The driver's events as metrics: which series each event counts, and the sums over the nodes.
import { beforeEach, expect, test } from '@jest/globals'
import type { Client } from 'cassandra-driver'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import { DriverMetrics, exportConnectionState } from './driver-metrics.ts'

let metrics: Metrics
let driver: DriverMetrics

beforeEach(() => {
  metrics = createMetrics()
  driver = new DriverMetrics(metrics)
})

/** Every counter of the driver's events that is not zero, as `name{reason}`. */
async function counted() {
  const counters = {
    errors: metrics.cassandraErrors,
    retries: metrics.cassandraRetries,
    speculative: metrics.cassandraSpeculativeExecutions,
  }
  const found: (readonly [string, number])[] = []
  for (const [name, counter] of Object.entries(counters)) {
    for (const { labels, value } of (await counter.get()).values) {
      const reason = 'reason' in labels ? `{${String(labels.reason)}}` : ''
      if (value > 0) found.push([`${name}${reason}`, value])
    }
  }
  return Object.fromEntries(found)
}

test.each([
  ['errors{authentication}', 'onAuthenticationError'],
  ['errors{connection}', 'onConnectionError'],
  ['errors{client-timeout}', 'onClientTimeoutError'],
  ['errors{read-timeout}', 'onReadTimeoutError'],
  ['errors{write-timeout}', 'onWriteTimeoutError'],
  ['errors{unavailable}', 'onUnavailableError'],
  ['errors{other}', 'onOtherError'],
  ['retries{client-timeout}', 'onClientTimeoutRetry'],
  ['retries{read-timeout}', 'onReadTimeoutRetry'],
  ['retries{write-timeout}', 'onWriteTimeoutRetry'],
  ['retries{unavailable}', 'onUnavailableRetry'],
  ['retries{other}', 'onOtherErrorRetry'],
  ['speculative', 'onSpeculativeExecution'],
] as const)('an event of %s is counted once', async (series, method) => {
  const emit = () => {
    const events = driver as unknown as Readonly<Record<string, (error: Error) => void>>
    events[method]?.(new Error('failed'))
  }
  expect(await counted()).toEqual({})
  emit()
  expect(await counted()).toEqual({ [series]: 1 })
  emit()
  expect(await counted()).toEqual({ [series]: 2 })
})

test('every reason has a series before its first event', async () => {
  const { cassandraErrors, cassandraRetries } = metrics
  const [errors, retries] = [await cassandraErrors.get(), await cassandraRetries.get()]
  expect([errors.values.length, retries.values.length]).toEqual([7, 5])
  expect([...errors.values, ...retries.values].every(({ value }) => value === 0)).toBe(true)
})

/** The sum and number of the observed response times. */
async function responses() {
  const { values } = await metrics.cassandraResponseSeconds.get()
  return values.slice(-2).map(({ value }) => value)
}

test('a response is observed once, in seconds', async () => {
  expect(await responses()).toEqual([0, 0])
  driver.onResponse([2, 500_000_000])
  driver.onSuccessfulResponse()
  expect(await responses()).toEqual([2.5, 1])
  driver.onResponse([0, 250_000_000])
  expect(await responses()).toEqual([2.75, 2])
  driver.onResponse([])
  expect(await responses()).toEqual([2.75, 3])
})

const valueOf = async (gauge: Metrics['cassandraHosts']) => (await gauge.get()).values[0]?.value

/** Exports the state of a client with these nodes, each its connections and requests in flight. */
async function exported(nodes: readonly { connections: number; inFlight: number }[]) {
  const state = {
    getConnectedHosts: () => nodes,
    getOpenConnections: ({ connections }: (typeof nodes)[number]) => connections,
    getInFlightQueries: ({ inFlight }: (typeof nodes)[number]) => inFlight,
  }
  exportConnectionState({ getState: () => state } as unknown as Client, metrics)
  const { cassandraHosts, cassandraConnections, cassandraInFlight } = metrics
  return Promise.all([cassandraHosts, cassandraConnections, cassandraInFlight].map(valueOf))
}

test('connections and requests in flight are the sums over the connected nodes', async () => {
  const nodes = [
    { connections: 2, inFlight: 70 },
    { connections: 3, inFlight: 0 },
    { connections: 1, inFlight: 5 },
  ]
  expect(await exported(nodes)).toEqual([3, 6, 75])
  expect(await exported([])).toEqual([0, 0, 0])
})
