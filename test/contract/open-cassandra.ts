// Opens Cassandra for tests: one real node, and in it a keyspace of its own with our tables.
// Closing ends the node.
import { parseConfig } from '../../src/config/config.ts'
import { pause } from '../../src/resilience/deadline.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { type Cassandra, openCassandra } from '../../src/stores/cassandra/client.ts'
import { migrate } from '../../src/stores/cassandra/migrations.ts'
import { createKeyspace } from '../../src/stores/cassandra/schema.ts'
import { type CassandraConfig, cassandraSettings } from '../../src/stores/cassandra/settings.ts'
import { type CassandraCluster, startCassandra } from '../parts/cassandra.ts'
import { openParts } from './open-parts.ts'

/** For what starts a node: Java and the jars may have to be fetched first. */
export const SETUP_MS_MAX = 900_000
const LATE_MS_MAX = 20_000
const REPEAT_MS = 50

/** A logger that says nothing. */
export const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
}

/** The environment by which a role finds a cluster. */
export function environmentOf(
  { contactPoints, port, localDc }: CassandraCluster,
  keyspace: string,
): Record<string, string> {
  return {
    CASSANDRA_CONTACT_POINTS: contactPoints.join(','),
    CASSANDRA_PORT: String(port),
    CASSANDRA_LOCAL_DC: localDc,
    CASSANDRA_KEYSPACE: keyspace,
  }
}

/** The configuration that such an environment comes to. */
function configOf(cluster: CassandraCluster, keyspace: string): CassandraConfig {
  return parseConfig(cassandraSettings, environmentOf(cluster, keyspace))
}

/** Makes a keyspace with our tables, with as many replicas as there are nodes. */
async function makeKeyspace(cluster: CassandraCluster, keyspace: string): Promise<void> {
  const config = configOf(cluster, keyspace)
  const metrics = createMetrics()
  const cassandra = openCassandra({ config, inKeyspace: false, metrics, log: quiet })
  try {
    await cassandra.ready
    const replicas = cluster.nodes.length
    await cassandra.changeSchema(createKeyspace(keyspace, [{ dc: cluster.localDc, replicas }]))
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

/** A connection to a node of its own. */
export interface OpenedCassandra {
  readonly cassandra: Cassandra
  readonly cluster: CassandraCluster
  readonly config: CassandraConfig
  readonly metrics: Metrics
  readonly close: () => Promise<void>
}

/**
 * The connection, but reads by key that the node was too late for are put again: it has just begun
 * and shares two cores with the tests, and what uses it here asks for answers, not for their time.
 */
function repeatLateReads(cassandra: Cassandra): Cassandra {
  return {
    ...cassandra,
    async execute(kind, cql, values) {
      const isRead = kind.endsWith('-read')
      const endMs = performance.now() + LATE_MS_MAX
      for (;;) {
        try {
          return await cassandra.execute(kind, cql, values)
        } catch (error) {
          const mayRepeat = isRead && error instanceof StoreError && performance.now() < endMs
          if (!mayRepeat) throw error
          await pause(REPEAT_MS)
        }
      }
    },
  }
}

/** Starts a node, makes a keyspace and connects to it. */
export function openNode(keyspace: string): Promise<OpenedCassandra> {
  return openParts(async (onClose) => {
    const cluster = await startCassandra({ nodes: 1 })
    onClose(() => cluster.stop())
    await makeKeyspace(cluster, keyspace)
    const config = configOf(cluster, keyspace)
    const metrics = createMetrics()
    const cassandra = openCassandra({ config, metrics, log: quiet })
    onClose(() => cassandra.close())
    await cassandra.ready
    return { cassandra: repeatLateReads(cassandra), cluster, config, metrics }
  })
}
