// Writes many links into Cassandra and Redis for a benchmark, in the service's formats. The writes
// to Cassandra are unconditional, unlike the service's.
import { Client, types } from 'cassandra-driver'
import { Redis } from 'ioredis'
import { encodeEntry, keyOf } from '../../src/stores/redis/link-cache-entry.ts'

const INSERT = `INSERT INTO links (short_code, long_url, created_at, writer_id)
  VALUES (?, ?, ?, ?)`
const READ = 'SELECT * FROM links WHERE short_code = ?'
/** Links per batch: on a single node a batch costs a fraction of its single writes. */
const BATCH = 32
const CONCURRENT_BATCHES = 16
const CONCURRENT_READS = 64
const READ_MS_MAX = 10_000
const LINKS_PER_MSET = 1000

/** The code of link `i`, from 0. */
export function filledCode(i: number): string {
  return `p${i.toString(36).padStart(6, '0')}`
}

function targetOf(code: string): string {
  return `https://example.com/a/path/of/usual/length?id=${code}`
}

/** The Cassandra node of the links. */
interface LinkNode {
  readonly contactPoints: readonly string[]
  readonly port: number
  readonly localDc: string
}

/** Writes links `from` to `count` − 1 to the keyspace `curtail`. */
export async function fillLinks(
  given: LinkNode & {
    /** @default 0 */
    readonly from?: number
    readonly count: number
    readonly log: (line: string) => void
  },
): Promise<void> {
  const { from = 0, count } = given
  const startMs = performance.now()
  const times = Math.ceil((count - from) / BATCH)
  await workOn(given, { times, concurrency: CONCURRENT_BATCHES }, (client, i) => {
    const first = from + i * BATCH
    const codes = Array.from({ length: Math.min(BATCH, count - first) }, (_, at) =>
      filledCode(first + at),
    )
    const inserts = codes.map((code) => {
      return { query: INSERT, params: [code, targetOf(code), new Date(), types.Uuid.random()] }
    })
    return client.batch(inserts, { prepare: true, logged: false })
  })
  const seconds = (performance.now() - startMs) / 1000
  given.log(`${count - from} links written in ${seconds.toFixed(0)} s`)
}

/** Reads links evenly from `from` to `to` − 1, so that the JVM compiles its hot code. */
export async function readLinks(
  given: LinkNode & { readonly from: number; readonly to: number; readonly reads: number },
): Promise<void> {
  const { from, to, reads } = given
  const stride = (to - from) / reads
  await workOn(given, { times: reads, concurrency: CONCURRENT_READS }, (client, i) =>
    client.execute(READ, [filledCode(from + Math.floor(i * stride))]),
  )
}

async function workOn(
  { contactPoints, port, localDc }: LinkNode,
  { times, concurrency }: { times: number; concurrency: number },
  step: (client: Client, i: number) => Promise<unknown>,
): Promise<void> {
  const client = new Client({
    contactPoints: [...contactPoints],
    localDataCenter: localDc,
    keyspace: 'curtail',
    protocolOptions: { port },
    socketOptions: { readTimeout: READ_MS_MAX },
    queryOptions: { prepare: true, consistency: types.consistencies.localQuorum },
  })
  await client.connect()
  let next = 0
  const work = async () => {
    while (next < times) await step(client, next++)
  }
  try {
    await Promise.all(Array.from({ length: concurrency }, work))
  } finally {
    await client.shutdown()
  }
}

/** Writes links 0 to `count` − 1 into the Redis at `port`; the links do not expire. */
export async function fillCache(port: number, count: number): Promise<void> {
  const redis = new Redis({ host: '127.0.0.1', port })
  const codes = Array.from({ length: count }, (_, i) => filledCode(i))
  for (let at = 0; at < codes.length; at += LINKS_PER_MSET) {
    const entries = codes.slice(at, at + LINKS_PER_MSET).flatMap((code) => {
      return [keyOf(code), encodeEntry(code, { longUrl: targetOf(code), expiresAtMs: null })]
    })
    await redis.mset(...entries)
  }
  redis.disconnect()
}
