// What the driver says of its work, counted in Prometheus. Labels are few words of the driver's:
// never a host, a keyspace or a statement.
import { type Client, metrics as driver } from 'cassandra-driver'
import type { Metrics } from '../../telemetry/metrics.ts'

/** The metrics that this room counts. */
export type CassandraMetrics = Pick<
  Metrics,
  | 'cassandraCallSeconds'
  | 'cassandraResponseSeconds'
  | 'cassandraErrors'
  | 'cassandraRetries'
  | 'cassandraSecondReads'
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

/** Counts what the driver reports, instead of emitting it. */
export class DriverMetrics extends driver.DefaultMetrics {
  readonly #responses: { observe(seconds: number): void }

  constructor(into: CassandraMetrics) {
    super()
    this.#responses = into.cassandraResponseSeconds.labels()
    for (const [why, method] of Object.entries(errorKinds)) {
      const series = into.cassandraErrors.labels(why)
      this[method] = () => {
        series.inc()
      }
    }
    for (const [why, method] of Object.entries(retryKinds)) {
      const series = into.cassandraRetries.labels(why)
      this[method] = () => {
        series.inc()
      }
    }
    this.onSpeculativeExecution = () => {
      into.cassandraSecondReads.inc(1)
    }
  }

  override onResponse([seconds = 0, nanoseconds = 0]: number[]): void {
    this.#responses.observe(seconds + nanoseconds / 1e9)
  }

  override onSuccessfulResponse(): void {
    // counted by onResponse
  }
}

/** Shows the driver's connections as they stand now. */
export function showPool(client: Client, into: CassandraMetrics): void {
  const state = client.getState()
  const hosts = state.getConnectedHosts()
  const sum = (of: (host: (typeof hosts)[number]) => number) =>
    hosts.reduce((total, host) => total + of(host), 0)
  into.cassandraHosts.set(hosts.length)
  into.cassandraConnections.set(sum((host) => state.getOpenConnections(host)))
  into.cassandraInFlight.set(sum((host) => state.getInFlightQueries(host)))
}
