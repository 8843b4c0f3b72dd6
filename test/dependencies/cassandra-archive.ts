// The class archive (CDS), with which a node starts in half the time: created once for each Java
// version, by a node that executes statements of every kind and stops gracefully.
import { once } from 'node:events'
import { access, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import cassandra from 'cassandra-driver'
import { withinDeadline } from '../kit/wait-for.ts'
import { CASSANDRA_VERSION } from './cassandra-jars.ts'
import { startNode } from './cassandra-node.ts'
import { reserveAddresses } from './loopback-block.ts'
import type { Java } from './java.ts'
import { cachedDependency } from './dependency-cache.ts'

const QUIET = ['-Xlog:cds=off', '-Xlog:cds+dynamic=off']
const FILE = 'cassandra.jsa'
const WRITE_MS_MAX = 300_000

/** The JVM flags for the archive, which is created first if it does not exist. */
export async function findArchive(java: Java, classPath: string): Promise<readonly string[]> {
  const version = java.version.replaceAll(/[^\w.+-]/g, '_')
  const name = `cassandra-${CASSANDRA_VERSION}-classes-${version}`
  const folder = await cachedDependency(name, (unfinished) =>
    createArchive({ java, classPath, folder: unfinished }),
  )
  // A JVM that cannot use the archive starts without it, only slower.
  return ['-Xshare:auto', `-XX:SharedArchiveFile=${join(folder, FILE)}`, ...QUIET]
}

async function createArchive(given: {
  java: Java
  classPath: string
  folder: string
}): Promise<void> {
  const { java, classPath, folder } = given
  const home = join(folder, 'home')
  await mkdir(home)
  const block = await reserveAddresses([1])
  try {
    const [address = ''] = block.addresses
    const { port, storagePort } = block
    const node = await startNode({
      ...{ java: java.path, classPath, home, address, publicAddress: address, port, storagePort },
      jvmFlags: [`-XX:ArchiveClassesAtExit=${join(folder, FILE)}`, ...QUIET],
      ...{ addresses: [address], place: 0, settings: {} },
    })
    try {
      await node.ready(0)
      await executeStatements(address, port)
      const exited = once(node.child, 'exit') // the exit writes the archive
      node.child.kill('SIGTERM')
      await withinDeadline('the class archive of Cassandra', exited, WRITE_MS_MAX)
      await access(join(folder, FILE))
    } finally {
      await node.kill()
    }
  } finally {
    await block.release()
    await rm(home, { recursive: true, force: true })
  }
  await writeFile(
    join(folder, 'README'),
    'Cassandra classes for the tests of Curtail; may be deleted.\n',
  )
}

/** Executes statements of every kind, so that the archive contains their classes. */
async function executeStatements(address: string, port: number): Promise<void> {
  const client = new cassandra.Client({
    contactPoints: [address],
    protocolOptions: { port },
    localDataCenter: 'datacenter1',
    socketOptions: { readTimeout: 30_000 },
  })
  const statements = [
    "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
    'CREATE TABLE k.t (a text PRIMARY KEY, b text, c bigint, d timestamp, e uuid)',
    "INSERT INTO k.t (a, b) VALUES ('1', '2') IF NOT EXISTS USING TTL 1000",
    "INSERT INTO k.t (a, b) VALUES ('2', '2')",
    "UPDATE k.t USING TTL 100 SET b = '3' WHERE a = '1' IF b = '2'",
    "SELECT b, ttl(b) FROM k.t WHERE a = '1'",
    'SELECT * FROM k.t LIMIT 10',
    "DELETE FROM k.t WHERE a = '1' IF EXISTS",
    "DELETE FROM k.t WHERE a = '2'",
    'SELECT * FROM system_views.settings LIMIT 5',
  ]
  try {
    for (const statement of statements) {
      const prepare = !statement.startsWith('CREATE')
      await client.execute(statement, [], { prepare })
    }
    const serial = { consistency: cassandra.types.consistencies.serial, prepare: true }
    await client.execute("SELECT b FROM k.t WHERE a = '1'", [], serial)
  } finally {
    await client.shutdown()
  }
}
