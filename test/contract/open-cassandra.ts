// Opens Cassandra for tests: one real node with a new keyspace that has our tables.
// Closing stops the node. Mutation tests share one node (test/soak/mutants.ts).
import { randomUUID } from 'node:crypto'
import { parseConfig } from '../../src/config/config.ts'
import { pause } from '../../src/resilience/deadline.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { type Cassandra, openCassandra } from '../../src/stores/cassandra/client.ts'
import { migrate } from '../../src/stores/cassandra/migrations.ts'
import { createKeyspace } from '../../src/stores/cassandra/schema.ts'
import { type CassandraConfig, cassandraSettings } from '../../src/stores/cassandra/settings.ts'
import {
  type CassandraCluster,
  type CassandraOptions,
  startCassandra,
} from '../dependencies/cassandra.ts'
import { type OnClose, openDependencies } from './open-dependencies.ts'

/** Timeout of a test set-up that starts a node: Java and the jars may have to be downloaded. */
export const SETUP_MS_MAX = 900_000
const RETRY_MS_MAX = 20_000
const RETRY_PAUSE_MS = 50

/** A logger that discards everything. */
export const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
}

/** What a client needs to connect. */
type Address = Pick<CassandraCluster, 'contactPoints' | 'port' | 'localDc'>

/** The environment of a role that uses the cluster. */
export function environmentOf(
  { contactPoints, port, localDc }: Address,
  keyspace: string,
): Record<string, string> {
  return {
    CASSANDRA_CONTACT_POINTS: contactPoints.join(','),
    CASSANDRA_PORT: String(port),
    CASSANDRA_LOCAL_DC: localDc,
    CASSANDRA_KEYSPACE: keyspace,
  }
}

/** The configuration of that environment. */
function configOf(cluster: Address, keyspace: string): CassandraConfig {
  return parseConfig(cassandraSettings, environmentOf(cluster, keyspace))
}

/** Creates a keyspace with our tables on one node. */
async function createMigratedKeyspace(cluster: Address, keyspace: string): Promise<void> {
  const config = configOf(cluster, keyspace)
  const metrics = createMetrics()
  const cassandra = openCassandra({ config, inKeyspace: false, metrics, log: quiet })
  try {
    await cassandra.ready
    const replication = [{ dc: cluster.localDc, replicas: 1 }]
    await cassandra.changeSchema(createKeyspace(keyspace, replication))
    const signal = new AbortController().signal
    await migrate(cassandra, {
      keyspace,
      signal,
      onStep: () => undefined,
      onWait: () => undefined,
    })
  } finally {
    await cassandra.close()
  }
}

/** A connection to its own node. */
export interface OpenedCassandra {
  readonly cassandra: Cassandra
  readonly cluster: CassandraCluster
  readonly config: CassandraConfig
  readonly metrics: Metrics
  readonly close: () => Promise<void>
}

/**
 * The connection with retries of reads by key that time out: the node has just started and shares
 * two cores with the tests, and these tests do not verify response times.
 */
function retryTimedOutReads(cassandra: Cassandra): Cassandra {
  return {
    ...cassandra,
    async execute(kind, cql, values) {
      const isRead = kind.endsWith('-read')
      const endMs = performance.now() + RETRY_MS_MAX
      for (;;) {
        try {
          return await cassandra.execute(kind, cql, values)
        } catch (error) {
          const mayRetry = isRead && error instanceof StoreError && performance.now() < endMs
          if (!mayRetry) throw error
          await pause(RETRY_PAUSE_MS)
        }
      }
    },
  }
}

/** Starts a node, creates a keyspace and connects to it. */
export function openNode(
  keyspace: string,
  options: Omit<CassandraOptions, 'nodes'> = {},
): Promise<OpenedCassandra> {
  return openDependencies(async (onClose) => {
    const cluster = await startCassandra({ nodes: 1, ...options })
    onClose(() => cluster.stop())
    return { cluster, ...(await openKeyspace(cluster, keyspace, onClose)) }
  })
}

/** The same for tests that only execute statements; mutation tests share one node. */
export function openStatements(
  keyspace: string,
): Promise<Pick<OpenedCassandra, 'cassandra' | 'close'>> {
  const shared = process.env['MUTANT_CASSANDRA']
  if (shared === undefined) return openNode(keyspace)
  const name = `k${randomUUID().replaceAll('-', '')}`
  return openDependencies(async (onClose) => {
    const opened = await openKeyspace(JSON.parse(shared) as Address, name, onClose)
    onClose(() => opened.cassandra.changeSchema(`DROP KEYSPACE ${name}`))
    return opened
  })
}

async function openKeyspace(
  cluster: Address,
  keyspace: string,
  onClose: OnClose,
): Promise<Pick<OpenedCassandra, 'cassandra' | 'config' | 'metrics'>> {
  await createMigratedKeyspace(cluster, keyspace)
  const config = configOf(cluster, keyspace)
  const metrics = createMetrics()
  const cassandra = openCassandra({ config, metrics, log: quiet })
  onClose(() => cassandra.close())
  await cassandra.ready
  return { cassandra: retryTimedOutReads(cassandra), config, metrics }
}
