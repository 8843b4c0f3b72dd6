// Puts many links into Cassandra and Redis for a benchmark, as the service writes them; into
// Cassandra by plain writes, which the service itself never does.
import { Client, types } from 'cassandra-driver'
import { Redis } from 'ioredis'
import { encodeEntry, keyOf } from '../../src/stores/redis/link-cache-entry.ts'

const INSERT = `INSERT INTO links (short_code, long_url, created_at, writer_id)
  VALUES (?, ?, ?, ?)`
const AT_ONCE = 256
const READ_MS_MAX = 10_000
const CACHED_AT_ONCE = 1000

/** The code of the link number `i`, from 0. */
export function filledCode(i: number): string {
  return `p${i.toString(36).padStart(6, '0')}`
}

function targetOf(code: string): string {
  return `https://example.com/a/path/of/usual/length?id=${code}`
}

/** Writes links `from` to `count` − 1 to the keyspace `curtail`. */
export async function fillLinks(given: {
  readonly contactPoints: readonly string[]
  readonly port: number
  readonly localDc: string
  /** @default 0 */
  readonly from?: number
  readonly count: number
  readonly log: (line: string) => void
}): Promise<void> {
  const client = new Client({
    contactPoints: [...given.contactPoints],
    localDataCenter: given.localDc,
    keyspace: 'curtail',
    protocolOptions: { port: given.port },
    socketOptions: { readTimeout: READ_MS_MAX },
    queryOptions: { prepare: true, consistency: types.consistencies.localQuorum },
  })
  await client.connect()
  const begunMs = performance.now()
  const { from = 0 } = given
  let next = from
  const work = async () => {
    while (next < given.count) {
      const code = filledCode(next++)
      await client.execute(INSERT, [code, targetOf(code), new Date(), types.Uuid.random()])
    }
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  } finally {
    await client.shutdown()
  }
  const seconds = (performance.now() - begunMs) / 1000
  given.log(`${given.count - from} links written in ${seconds.toFixed(0)} s`)
}

/** Puts links 0 to `count` − 1 into the Redis at `port`, without an end of their own. */
export async function fillCache(port: number, count: number): Promise<void> {
  const redis = new Redis({ host: '127.0.0.1', port })
  const codes = Array.from({ length: count }, (_, i) => filledCode(i))
  for (let at = 0; at < codes.length; at += CACHED_AT_ONCE) {
    const entries = codes.slice(at, at + CACHED_AT_ONCE).flatMap((code) => {
      return [keyOf(code), encodeEntry({ longUrl: targetOf(code), expiresAtMs: null })]
    })
    await redis.mset(...entries)
  }
  redis.disconnect()
}
