// Reads the rows of a pool of codes directly from Cassandra, not through the service.
import cassandra from 'cassandra-driver'
import { unpackCodes } from '../../../src/codes/block.ts'
import type { CassandraCluster } from '../../dependencies/cassandra.ts'
import { waitFor } from '../wait-for.ts'

const { consistencies } = cassandra.types
const READ_MS_MAX = 20_000
const PARALLEL = 16

/** A pool's counters, and the codes of every block that is minted but not claimed. */
export interface PoolRows {
  readonly minted: number
  readonly claimed: number
  /** Numbers of blocks that the counters include but that do not exist. */
  readonly absent: readonly number[]
  readonly codes: readonly string[]
}

/** Reads pools directly from Cassandra. */
export interface PoolReader {
  /** The pool's rows; undefined if it does not exist. Other processes may change it meanwhile. */
  read(pool: string): Promise<PoolRows | undefined>
  close(): Promise<void>
}

/** Opens a reader. */
export function openPoolReader(cluster: CassandraCluster): PoolReader {
  const client = new cassandra.Client({
    contactPoints: [...cluster.contactPoints],
    protocolOptions: { port: cluster.port },
    localDataCenter: cluster.localDc,
    keyspace: 'curtail',
    queryOptions: { prepare: true, consistency: consistencies.localQuorum },
    socketOptions: { readTimeout: READ_MS_MAX },
  })
  return {
    async read(pool) {
      const counters = await readCounters(client, pool)
      if (counters === undefined) return undefined
      const { minted, claimed } = counters
      const missing: number[] = []
      const codes: string[] = []
      const remaining = Array.from({ length: minted - claimed }, (_, i) => claimed + 1 + i)
      const reader = async () => {
        for (let seq = remaining.pop(); seq !== undefined; seq = remaining.pop()) {
          const found = await readBlock(client, pool, seq)
          if (found === undefined) missing.push(seq)
          else codes.push(...found)
        }
      }
      await Promise.all(Array.from({ length: PARALLEL }, reader))
      // A block claimed meanwhile may be deleted; no block is deleted before it is claimed.
      const since = missing.length === 0 ? undefined : await readCounters(client, pool)
      const absent = missing.filter((seq) => seq > (since?.claimed ?? claimed))
      return { minted, claimed, absent, codes }
    },
    close: () => client.shutdown(),
  }
}

/** Reads a pool once, on its own connection. */
export async function readPoolRows(
  cluster: CassandraCluster,
  pool: string,
): Promise<PoolRows | undefined> {
  const reader = openPoolReader(cluster)
  try {
    return await reader.read(pool)
  } finally {
    await reader.close()
  }
}

async function readCounters(client: cassandra.Client, pool: string) {
  const query = 'SELECT minted, claimed FROM code_pools WHERE pool = ?'
  const serial = { consistency: consistencies.localSerial }
  // While many processes claim, a serial read may lose the contention until it times out.
  const read = () => client.execute(query, [pool], serial)
  const responses: Awaited<ReturnType<typeof read>>[] = []
  let failure: unknown
  const isRead = async () => {
    await read().then(
      (response) => responses.push(response),
      (error: unknown) => (failure = error),
    )
    return responses.length > 0
  }
  await waitFor('a serial read', isRead).catch((error: unknown) => {
    throw new Error(String(failure), { cause: error })
  })
  const row = responses[0]?.rows[0]
  return row && { minted: Number(row['minted']), claimed: Number(row['claimed']) }
}

async function readBlock(
  client: cassandra.Client,
  pool: string,
  seq: number,
): Promise<string[] | undefined> {
  const query = 'SELECT codes FROM code_blocks WHERE pool = ? AND seq = ?'
  const key = [pool, cassandra.types.Long.fromNumber(seq)]
  const [row] = (await client.execute(query, key)).rows
  return row === undefined ? undefined : unpackCodes(String(row['codes']))
}
