// What Cassandra really holds of a pool of codes, read past the service.
import cassandra from 'cassandra-driver'
import { unpackCodes } from '../../src/codes/block.ts'
import type { CassandraCluster } from '../parts/cassandra.ts'
import { waitFor } from './wait-for.ts'

const { consistencies } = cassandra.types
const READ_MS_MAX = 20_000
const PARALLEL = 16

/** A pool's counters, and the codes of every block that is minted and not claimed. */
export interface PoolRows {
  readonly minted: number
  readonly claimed: number
  /** Numbers of blocks that the counters tell of and that are not there. */
  readonly absent: readonly number[]
  readonly codes: readonly string[]
}

/** Reads pools past the service. */
export interface PoolReader {
  /** A pool as it stands; undefined where nobody has made it. Others may be at work on it. */
  read(pool: string): Promise<PoolRows | undefined>
  close(): Promise<void>
}

/** Opens one. */
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
      const missed: number[] = []
      const codes: string[] = []
      const left = Array.from({ length: minted - claimed }, (_, i) => claimed + 1 + i)
      const reader = async () => {
        for (let seq = left.pop(); seq !== undefined; seq = left.pop()) {
          const found = await readBlock(client, pool, seq)
          if (found === undefined) missed.push(seq)
          else codes.push(...found)
        }
      }
      await Promise.all(Array.from({ length: PARALLEL }, reader))
      // What was claimed meanwhile may be gone; a block goes only after that.
      const since = missed.length === 0 ? undefined : await readCounters(client, pool)
      const absent = missed.filter((seq) => seq > (since?.claimed ?? claimed))
      return { minted, claimed, absent, codes }
    },
    close: () => client.shutdown(),
  }
}

/** Reads a pool once. */
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
  // Among many who claim, a serial read may come out of turn until its time is up.
  const read = () => client.execute(query, [pool], serial)
  const answers: Awaited<ReturnType<typeof read>>[] = []
  let failure: unknown
  const isRead = async () => {
    await read().then(
      (answer) => answers.push(answer),
      (error: unknown) => (failure = error),
    )
    return answers.length > 0
  }
  await waitFor('a serial read', isRead).catch((error: unknown) => {
    throw new Error(String(failure), { cause: error })
  })
  const row = answers[0]?.rows[0]
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
