// A connection to Cassandra: connects in the background, retrying until it succeeds; runs each
// kind of statement within its deadline; throws every failure as StoreError.
import { Client } from 'cassandra-driver'
import { within } from '../../resilience/deadline.ts'
import { fromHalf, retryUntilStopped } from '../../resilience/retry-until-deadline.ts'
import { createStartPeriod } from '../../resilience/start-period.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { Log } from '../../telemetry/log.ts'
import { createCalls, createProbe, createWarmUp, rowsOf, runOnEach } from './calls.ts'
import { type ConnectFault, connectFaultOf, isNoNodeReached } from './connect-fault.ts'
import { type CassandraMetrics, DriverMetrics } from './driver-metrics.ts'
import { BACK_OFF, driverOptions } from './driver-options.ts'
import { preventConnectionLeaks } from './workaround-connection-leaks.ts'
import type { Row } from './row.ts'
import { type CassandraConfig, type CassandraPlan, planCassandra } from './settings.ts'
import type { StatementKind } from './statement-kinds.ts'
import { traceStatements } from './trace-statements.ts'
import { type StoreState, watchNodes } from './watch-nodes.ts'

/** Runs statements; all that the stores need. */
export interface CassandraSession {
  /** Runs one statement; resolves to its rows. Throws StoreError. */
  execute(kind: StatementKind, cql: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Prepares statements before their first use, best effort. Each must take values. */
  warmUp(statements: readonly string[]): void
}

/** A connection to a cluster. */
export interface Cassandra extends CassandraSession {
  /** Resolves to `up` at the first connection, or to `closed` if it is closed before. */
  readonly ready: Promise<'up' | 'closed'>
  /** Whether a majority of replicas responds. */
  isUp(): boolean
  /** Runs a read on each node that is up; a node that fails contributes no rows. */
  executeOnEach(cql: string): Promise<readonly (readonly Row[])[]>
  /** Changes the schema. Throws StoreError, for example if not all nodes agree on the change. */
  changeSchema(cql: string): Promise<void>
  /** Closes the connection once no caller waits for a statement, or after 2 s. Never rejects. */
  close(): Promise<void>
}

/** How to connect. */
export interface CassandraOptions {
  readonly config: CassandraConfig
  /** Whether to use CASSANDRA_KEYSPACE, which must then exist. @default true */
  readonly inKeyspace?: boolean
  readonly metrics: CassandraMetrics
  readonly log: Pick<Log, 'debug' | 'info' | 'warn'>
  /** Called on each change of the store's state; first with `up` or `no-majority`. */
  readonly onState?: (state: StoreState) => void
  /** Called for every failed attempt to connect; attempts continue. */
  readonly onFault?: (fault: ConnectFault) => void
  /** Stops the attempts to connect. */
  readonly signal?: AbortSignal
  /** How long after the start a missing connection is not a warning. @default a minute */
  readonly startMsMax?: number
}

/**
 * The 7 s of a stop (process/stop.ts), minus 4 s for the drain of the ports (http/open-service.ts),
 * minus a second for the other steps.
 */
const CLOSE_MS_MAX = 2000

/** Starts to connect; an unreachable cluster is retried, not thrown. Throws ConfigError. */
export function openCassandra(options: CassandraOptions): Cassandra {
  const { inKeyspace = true, metrics, log } = options
  const plan = planCassandra(options.config)
  const client = new Client({
    ...driverOptions(plan, inKeyspace),
    metrics: new DriverMetrics(metrics),
  })
  const closing = new AbortController()
  const leakFree = preventConnectionLeaks(client, { log, isClosed: () => closing.signal.aborted })
  const signals = [closing.signal, options.signal].filter((given) => given !== undefined)
  const signal = AbortSignal.any(signals)
  const watch = watchNodes({
    ...{ client, metrics, log, localDc: plan.localDc, onState: options.onState },
    probe: inKeyspace ? createProbe(client, plan.localDc) : undefined,
    onMajorityLost: () => {
      calls.failPending()
    },
  })
  const calls = createCalls({ client, metrics, log, watch })
  const run = traceStatements(calls.run)
  const warmUp = createWarmUp(client, log)
  const connect = async () => {
    const outcome = await connectWithRetry(client, { ...options, signal, plan })
    if (outcome === 'stopped') return 'closed'
    await warmUp.start()
    watch.start()
    return outcome
  }
  const connected = connect()
  return {
    ready: connected,
    isUp: () => watch.state() === 'up',
    execute: (kind, cql, values) => run(kind, cql, values).then(rowsOf),
    warmUp: (statements) => {
      warmUp.add(statements)
    },
    executeOnEach: (cql) => runOnEach(client, cql, plan.localDc),
    async changeSchema(cql) {
      const { info } = await calls.run('schema', cql)
      if (info.isSchemaInAgreement === true) return
      throw new StoreError('the nodes of Cassandra do not agree on the schema', {
        outcome: 'unknown',
      })
    },
    async close() {
      closing.abort()
      const closed = async () => {
        await connected
        await calls.drained()
        await watch.stop()
        await leakFree.shutdown()
      }
      const timeoutError = () => new Error('connections not closed within the deadline')
      await within(CLOSE_MS_MAX, closed(), timeoutError).catch((err: unknown) => {
        log.warn({ err }, 'Cassandra connections not closed cleanly')
      })
    },
  }
}

/** Retries until connected or `signal` aborts; the driver bounds each attempt. */
function connectWithRetry(
  client: Client,
  given: CassandraOptions & { readonly plan: CassandraPlan; readonly signal: AbortSignal },
): Promise<'up' | 'stopped'> {
  const { plan, log, onFault, signal } = given
  const start = createStartPeriod(given.startMsMax)
  let lastLogged = ''
  return retryUntilStopped({ signal, pauses: BACK_OFF, random: fromHalf }, async () => {
    try {
      await client.connect()
      return 'up'
    } catch (err) {
      const fault = connectFaultOf(err, plan)
      const level = start.levelOf(isNoNodeReached(err))
      const line = `${level} ${fault.sentence}`
      if (line === lastLogged) log.debug({ err }, fault.sentence)
      else log[level](fault.sentence)
      lastLogged = line
      onFault?.(fault)
      return 'failed'
    }
  })
}
