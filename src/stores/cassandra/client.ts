// A connection to Cassandra: connects in the background for as long as it takes, runs statements
// of known kinds within deadlines, and turns every failure into StoreError. Ends no process.
import { Client } from 'cassandra-driver'
import { pause, within } from '../../process/deadline.ts'
import type { Log } from '../../process/log.ts'
import { createCalls, createWarmUp, rowsOf } from './calls.ts'
import { type ConnectFault, connectFaultOf } from './connect-fault.ts'
import { type CassandraMetrics, DriverMetrics, showPool } from './driver-metrics.ts'
import { BACK_OFF, driverOptions } from './driver-options.ts'
import { mendClient } from './mend-client.ts'
import type { Row } from './row.ts'
import { type CassandraConfig, type CassandraPlan, planCassandra } from './settings.ts'
import type { StatementKind } from './statement-kinds.ts'
import { traceStatements } from './trace-statements.ts'

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
  /** Whether some node of the local data center can be asked now. */
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
  /** Told whenever the first node comes or the last one goes. */
  readonly onState?: (state: 'up' | 'down') => void
  /** Told of every attempt to connect that failed; it goes on trying. */
  readonly onFault?: (fault: ConnectFault) => void
  /** Ends the trying to connect. */
  readonly signal?: AbortSignal
}

const CLOSE_MS_MAX = 5000
const LOOK_EVERY_MS = 1000

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
  const watch = watchNodes(client, options)
  const calls = createCalls({ client, metrics, log, isUp: () => watch.isConnected() })
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
    isUp: () => watch.isUp(),
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
        watch.end()
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

/** Which nodes can be asked, told when the first comes or the last goes. */
function watchNodes(client: Client, { plan, metrics, log, onState }: Planned) {
  let isConnected = false
  let isUp = false
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const nodes = client.hosts.values().filter((host) => host.datacenter === plan.localDc)
    const isNowUp = isConnected && nodes.some((host) => host.isUp())
    if (isNowUp === isUp) return
    isUp = isNowUp
    if (isUp) log.info('Cassandra is there')
    else log.warn('Cassandra is away: no node answers')
    onState?.(isUp ? 'up' : 'down')
  }
  // A node that is found again is first removed, then added, then told its data center.
  const lookSoon = () => setImmediate(look)
  for (const event of ['hostUp', 'hostDown', 'hostAdd', 'hostRemove']) client.on(event, lookSoon)
  return {
    isUp: () => isUp,
    isConnected: () => isConnected,
    begin() {
      isConnected = true
      look()
      timer = setInterval(() => {
        look() // not every change is told
        showPool(client, metrics)
      }, LOOK_EVERY_MS)
      timer.unref()
      showPool(client, metrics)
    },
    end() {
      isConnected = isUp = false
      clearInterval(timer)
      client.removeAllListeners()
    },
  }
}
