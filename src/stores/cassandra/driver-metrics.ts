// Exports the driver's events as Prometheus metrics. Label values are a few fixed words: never a
// host, a keyspace or a statement.
import { type Client, metrics as driver } from 'cassandra-driver'
import type { Metrics } from '../../telemetry/metrics.ts'

/** The metrics of this module. */
export type CassandraMetrics = Pick<
  Metrics,
  | 'cassandraCallSeconds'
  | 'cassandraResponseSeconds'
  | 'cassandraErrors'
  | 'cassandraRetries'
  | 'cassandraSpeculativeExecutions'
  | 'cassandraHosts'
  | 'cassandraConnections'
  | 'cassandraInFlight'
  | 'cassandraMajority'
  | 'cassandraNodeChanges'
>

const errorKinds = {
  authentication: 'onAuthenticationError',
  connection: 'onConnectionError',
  'client-timeout': 'onClientTimeoutError',
  'read-timeout': 'onReadTimeoutError',
  'write-timeout': 'onWriteTimeoutError',
  unavailable: 'onUnavailableError',
  other: 'onOtherError',
} as const
const retryKinds = {
  'client-timeout': 'onClientTimeoutRetry',
  'read-timeout': 'onReadTimeoutRetry',
  'write-timeout': 'onWriteTimeoutRetry',
  unavailable: 'onUnavailableRetry',
  other: 'onOtherErrorRetry',
} as const

/** Counts the driver's events instead of emitting them. */
export class DriverMetrics extends driver.DefaultMetrics {
  readonly #responses: { observe(seconds: number): void }

  constructor(metrics: CassandraMetrics) {
    super()
    this.#responses = metrics.cassandraResponseSeconds.labels()
    for (const [reason, method] of Object.entries(errorKinds)) {
      const series = metrics.cassandraErrors.labels(reason)
      this[method] = () => {
        series.inc()
      }
    }
    for (const [reason, method] of Object.entries(retryKinds)) {
      const series = metrics.cassandraRetries.labels(reason)
      this[method] = () => {
        series.inc()
      }
    }
    this.onSpeculativeExecution = () => {
      metrics.cassandraSpeculativeExecutions.inc(1)
    }
  }

  override onResponse([seconds = 0, nanoseconds = 0]: number[]): void {
    this.#responses.observe(seconds + nanoseconds / 1e9)
  }

  override onSuccessfulResponse(): void {
    // counted by onResponse
  }
}

/** Exports the driver's current connections and in-flight requests. */
export function exportConnectionState(client: Client, metrics: CassandraMetrics): void {
  const state = client.getState()
  const hosts = state.getConnectedHosts()
  const sum = (of: (host: (typeof hosts)[number]) => number) =>
    hosts.reduce((total, host) => total + of(host), 0)
  metrics.cassandraHosts.set(hosts.length)
  metrics.cassandraConnections.set(sum((host) => state.getOpenConnections(host)))
  metrics.cassandraInFlight.set(sum((host) => state.getInFlightQueries(host)))
}
