// What Cassandra really holds of a pool of codes, read past the service.
import cassandra from 'cassandra-driver'
import { unpackCodes } from '../../src/codes/block.ts'
import type { CassandraCluster } from '../parts/cassandra.ts'

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

/** Reads them; undefined where nobody has made the pool. */
export async function readPoolRows(
  cluster: CassandraCluster,
  pool: string,
): Promise<PoolRows | undefined> {
  const client = new cassandra.Client({
    contactPoints: [...cluster.contactPoints],
    protocolOptions: { port: cluster.port },
    localDataCenter: cluster.localDc,
    keyspace: 'curtail',
    queryOptions: { prepare: true, consistency: consistencies.localQuorum },
    socketOptions: { readTimeout: READ_MS_MAX },
  })
  try {
    const query = 'SELECT minted, claimed FROM code_pools WHERE pool = ?'
    const serial = { consistency: consistencies.localSerial }
    const [row] = (await client.execute(query, [pool], serial)).rows
    if (row === undefined) return undefined
    const [minted, claimed] = [Number(row['minted']), Number(row['claimed'])]
    const absent: number[] = []
    const codes: string[] = []
    const left = Array.from({ length: minted - claimed }, (_, i) => claimed + 1 + i)
    const reader = async () => {
      for (let seq = left.pop(); seq !== undefined; seq = left.pop()) {
        const found = await readBlock(client, pool, seq)
        if (found === undefined) absent.push(seq)
        else codes.push(...found)
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, reader))
    return { minted, claimed, absent, codes }
  } finally {
    await client.shutdown()
  }
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
