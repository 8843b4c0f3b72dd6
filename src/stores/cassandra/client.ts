// A connection to Cassandra: connects in the background for as long as it takes, runs statements
// of known kinds within deadlines, and turns every failure into StoreError. Ends no process.
import { Client } from 'cassandra-driver'
import { pause, within } from '../../resilience/deadline.ts'
import type { Log } from '../../telemetry/log.ts'
import { createCalls, createProbe, createWarmUp, rowsOf } from './calls.ts'
import { type ConnectFault, connectFaultOf } from './connect-fault.ts'
import { type CassandraMetrics, DriverMetrics } from './driver-metrics.ts'
import { BACK_OFF, driverOptions } from './driver-options.ts'
import { mendClient } from './mend-client.ts'
import type { Row } from './row.ts'
import { type CassandraConfig, type CassandraPlan, planCassandra } from './settings.ts'
import type { StatementKind } from './statement-kinds.ts'
import { traceStatements } from './trace-statements.ts'
import { type StoreState, watchNodes } from './watch-nodes.ts'

/** What runs statements; all that stores need. */
export interface CassandraSession {
  /** Runs one statement; resolves to its rows. Throws StoreError. */
  execute(kind: StatementKind, cql: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Has statements prepared before their first use, if it can: they must take values. */
  warmUp(statements: readonly string[]): void
}

/** A connection to a cluster. */
export interface Cassandra extends CassandraSession {
  /** Resolves with `up` at the first connection, or with `closed` where it ends before. */
  readonly ready: Promise<'up' | 'closed'>
  /** Whether a majority of replicas responds. */
  isUp(): boolean
  /** Runs a read on each node that can be asked now; a node that fails gives no rows. */
  executeOnEach(cql: string): Promise<readonly (readonly Row[])[]>
  /** Changes the schema; resolves to whether all nodes have it. Throws StoreError. */
  changeSchema(cql: string): Promise<boolean>
  /** Ends it after the last answer under way. */
  close(): Promise<void>
}

/** How to connect. */
export interface CassandraOptions {
  readonly config: CassandraConfig
  /** Whether to begin in CASSANDRA_KEYSPACE, which must be there then. @default true */
  readonly inKeyspace?: boolean
  readonly metrics: CassandraMetrics
  readonly log: Pick<Log, 'debug' | 'info' | 'warn'>
  /** Called with each change of the store's state; first with `up` or `no-majority`. */
  readonly onState?: (state: StoreState) => void
  /** Told of every attempt to connect that failed; it goes on trying. */
  readonly onFault?: (fault: ConnectFault) => void
  /** Ends the trying to connect. */
  readonly signal?: AbortSignal
}

const CLOSE_MS_MAX = 5000

type Planned = CassandraOptions & { readonly plan: CassandraPlan }

/** Begins to connect, and never throws for a cluster that is not there. Throws ConfigError. */
export function openCassandra(given: CassandraOptions): Cassandra {
  const options = { ...given, plan: planCassandra(given.config) }
  const { plan, metrics, log } = options
  const client = new Client({
    ...driverOptions(plan, options.inKeyspace ?? true),
    metrics: new DriverMetrics(metrics),
  })
  const closing = new AbortController()
  const mended = mendClient(client, { log, isClosed: () => closing.signal.aborted })
  const signal =
    options.signal === undefined
      ? closing.signal
      : AbortSignal.any([closing.signal, options.signal])
  const isOurs = options.inKeyspace ?? true
  const watch = watchNodes({
    ...{ client, metrics, log, localDc: plan.localDc, onState: options.onState },
    probe: isOurs ? createProbe(client, plan.localDc) : undefined,
    onMissing: () => {
      calls.failWaiting()
    },
  })
  const calls = createCalls({ client, metrics, log, watch })
  const run = traceStatements(calls.run)
  const warming = createWarmUp(client, log)
  const connect = async () => {
    const outcome = await connectAtLast({ client, options, signal })
    if (outcome === 'closed') return outcome
    await warming.begin()
    watch.begin()
    return outcome
  }
  const connected = connect()
  return {
    ready: connected,
    isUp: () => watch.state() === 'up',
    execute: (kind, cql, values) => run(kind, cql, values).then(rowsOf),
    warmUp: (statements) => {
      warming.add(statements)
    },
    executeOnEach: (cql) => calls.runOnEach(cql, plan.localDc),
    async changeSchema(cql) {
      return (await calls.run('schema', cql)).info.isSchemaInAgreement === true
    },
    async close() {
      closing.abort()
      const closed = async () => {
        await connected
        await calls.drained()
        await watch.end()
        await mended.shutdown()
      }
      const late = () => new Error('connections to Cassandra did not close in time')
      await within(CLOSE_MS_MAX, closed(), late).catch((err: unknown) => {
        log.warn({ err }, 'connections to Cassandra were not closed in order')
      })
    },
  }
}

/** Tries until it is connected or `signal` aborts; each attempt is bounded by the driver. */
async function connectAtLast(given: {
  client: Client
  options: Planned
  signal: AbortSignal
}): Promise<'up' | 'closed'> {
  const { client, signal } = given
  const { plan, log, onFault } = given.options
  let told = ''
  let backOffMs = BACK_OFF.firstMs
  while (!signal.aborted) {
    try {
      await client.connect()
      return 'up'
    } catch (err) {
      const fault = connectFaultOf(err, plan)
      if (fault.sentence === told) log.debug({ err }, fault.sentence)
      else log.warn(fault.sentence)
      told = fault.sentence
      onFault?.(fault)
    }
    await pause(backOffMs * (0.5 + Math.random() / 2), signal)
    backOffMs = Math.min(backOffMs * 2, BACK_OFF.mostMs)
  }
  return 'closed'
}
