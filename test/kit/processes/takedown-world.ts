// A service with a large table of links: `create` and `redirect` on Cassandra and Redis, or
// `standalone` on SQLite.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import cassandra from 'cassandra-driver'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { startRedis } from '../../dependencies/redis.ts'
import { DIE_WITH_PARENT } from '../../stack/component.ts'
import { prepareLinks } from '../../stack/prepare-links.ts'
import { ADMIN_TOKEN, startServingRole } from '../../stack/serving-role.ts'
import {
  createTableSummer,
  type LinkRecord,
  recordAt,
  type TableSize,
  type TableSums,
} from '../links/link-rows.ts'
import { startStandalone } from './standalone.ts'

/** The running service. */
export interface TakedownWorld {
  readonly adminUrl: string
  readonly adminToken: string
  /** The port that redirects. */
  readonly port: number
  /** The processes whose CPU time is measured. */
  readonly pids: Readonly<Record<string, number>>
  /** Reads all links from the store, without the service. */
  sums(): Promise<TableSums>
  stop(): Promise<void>
}

/** How to fill the table. */
interface SeedOptions extends TableSize {
  /** Called with the number of rows written so far: first with 0, last with all. */
  readonly onRows: (rows: number) => void
}

/** A store whose table is filled before the service starts. */
export type StoreName = 'cassandra' | 'sqlite'

const BATCH_ROWS = 64
const BATCHES_IN_FLIGHT = 24
const SCAN_RANGES = 4
const SCAN_ROWS = 2000
const SCAN_MS_MAX = 60_000
const PROGRESS_ROWS = 1_000_000
/** Large batches are allowed, and fewer, larger flushes. */
const SEED_SETTINGS = {
  batch_size_warn_threshold: '1MiB',
  batch_size_fail_threshold: '2MiB',
  memtable_heap_space: '512MiB',
  commitlog_total_space: '1GiB',
  commitlog_segment_size: '32MiB',
}
const TOKENS = 2n ** 64n

/** Starts it with a filled table. */
export async function startTakedownWorld(
  store: StoreName,
  options: SeedOptions,
): Promise<TakedownWorld> {
  const closing: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const close of closing.splice(0).reverse()) await close()
  }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-takedown-'))
    closing.push(() => rm(folder, { recursive: true, force: true }))
    const open = store === 'cassandra' ? openOnCassandra : openOnSqlite
    return { ...(await open({ folder, closing }, options)), adminToken: ADMIN_TOKEN, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface OpenContext {
  readonly folder: string
  readonly closing: (() => Promise<unknown>)[]
}
type Opened = Omit<TakedownWorld, 'stop' | 'adminToken'>

async function openOnCassandra(
  { folder, closing }: OpenContext,
  options: SeedOptions,
): Promise<Opened> {
  const cluster = await startCassandra({
    ...{ nodes: 1, isProductionJvm: true, settings: SEED_SETTINGS },
  })
  closing.push(() => cluster.stop())
  const { env } = await prepareLinks({ cassandra: cluster, folder, codes: 1000 })
  const client = openClient(cluster)
  closing.push(() => client.shutdown())
  await client.connect()
  // Without the commit log, each write would not wait for its group: 10,000,000 rows in minutes.
  await client.execute('ALTER KEYSPACE curtail WITH durable_writes = false')
  await seedCassandra(client, options)
  await client.execute('ALTER KEYSPACE curtail WITH durable_writes = true')
  const redis = await startRedis(['--maxmemory', '256mb', '--maxmemory-policy', 'allkeys-lfu'])
  closing.push(() => redis.close())
  const serve = async (role: 'create' | 'redirect') => {
    const own = { BASE_URL: 'http://short.test', REDIS_URL: `redis://127.0.0.1:${redis.port}` }
    const all = { role, wrapper: DIE_WITH_PARENT, env: { ...env, ...own } }
    const serving = await startServingRole(all)
    closing.push(() => serving.stop())
    return serving
  }
  const [create, redirect] = [await serve('create'), await serve('redirect')]
  const [node] = cluster.nodes
  const pids = { cassandra: node?.pid() ?? 0, create: create.pid, redirect: redirect.pid }
  return {
    ...{ adminUrl: create.adminUrl, port: redirect.port, pids: { ...pids, redis: redis.pid() } },
    sums: () => sumCassandra(client),
  }
}

function openClient(cluster: CassandraCluster): cassandra.Client {
  return new cassandra.Client({
    contactPoints: [...cluster.contactPoints],
    protocolOptions: { port: cluster.port },
    localDataCenter: cluster.localDc,
    keyspace: 'curtail',
    encoding: { useBigIntAsLong: true, useUndefinedAsUnset: true },
    socketOptions: { readTimeout: SCAN_MS_MAX },
    queryOptions: { consistency: cassandra.types.consistencies.one, prepare: true },
  })
}

const COLUMNS =
  'short_code, long_url, created_at, expires_at, creator_id, writer_id, disabled_at, deleted_at'
const INSERT = `INSERT INTO links (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

/** Plain writes: nothing else writes yet, and later conditional writes have later timestamps. */
async function seedCassandra(client: cassandra.Client, options: SeedOptions): Promise<void> {
  const { links, onRows } = options
  let next = 0
  const dateOf = (ms: number | null) => (ms === null ? undefined : new Date(ms))
  const paramsOf = (record: LinkRecord) => [
    record.code,
    record.longUrl ?? undefined,
    dateOf(record.createdAtMs),
    dateOf(record.expiresAtMs),
    record.creatorId === null ? undefined : BigInt(record.creatorId),
    record.writerId,
    dateOf(record.disabledAtMs),
    dateOf(record.deletedAtMs),
  ]
  onRows(0)
  const work = async () => {
    while (next < links) {
      const from = next
      const to = Math.min(links, from + BATCH_ROWS)
      next = to
      const queries = Array.from({ length: to - from }, (_, at) => {
        return { query: INSERT, params: paramsOf(recordAt(from + at, options)) }
      })
      await client.batch(queries, { prepare: true, logged: false })
      if (Math.floor(from / PROGRESS_ROWS) !== Math.floor(to / PROGRESS_ROWS)) onRows(to)
    }
  }
  await Promise.all(Array.from({ length: BATCHES_IN_FLIGHT }, work))
  onRows(links)
}

async function sumCassandra(client: cassandra.Client): Promise<TableSums> {
  const summer = createTableSummer()
  const cql = `SELECT ${COLUMNS} FROM links WHERE token(short_code) > ? AND token(short_code) <= ?`
  const bound = (at: number) => (BigInt(at) * TOKENS) / BigInt(SCAN_RANGES) - TOKENS / 2n
  const msOf = (value: Date | null) => value?.getTime() ?? null
  const read = async (at: number) => {
    const last = at === SCAN_RANGES - 1 ? TOKENS / 2n - 1n : bound(at + 1)
    const options = { prepare: true, fetchSize: SCAN_ROWS, readTimeout: SCAN_MS_MAX }
    const result = await client.execute(cql, [bound(at), last], options)
    for await (const row of result) {
      const { short_code, long_url, created_at, expires_at, creator_id } = row as unknown as Columns
      const { writer_id, disabled_at, deleted_at } = row as unknown as Columns
      summer.add({
        ...{ code: short_code, longUrl: long_url, createdAtMs: created_at.getTime() },
        expiresAtMs: msOf(expires_at),
        creatorId: creator_id === null ? null : Number(creator_id),
        writerId: writer_id.toString(),
        ...{ disabledAtMs: msOf(disabled_at), deletedAtMs: msOf(deleted_at) },
      })
    }
  }
  await Promise.all(Array.from({ length: SCAN_RANGES }, (_, at) => read(at)))
  return summer.result()
}

interface Columns {
  readonly short_code: string
  readonly long_url: string | null
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly creator_id: bigint | null
  readonly writer_id: { toString(): string }
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
}

async function openOnSqlite({ folder, closing }: OpenContext, options: SeedOptions) {
  const env = { ADMIN_TOKEN }
  const dataDir = join(folder, 'data')
  const first = await startStandalone({ dataDir, env }) // creates the schema
  await first.stop()
  const file = join(dataDir, 'curtail.db')
  seedSqlite(file, options)
  const service = await startStandalone({ dataDir, env })
  closing.push(() => service.stop())
  return {
    ...{ adminUrl: service.adminUrl, port: service.port, pids: { standalone: service.pid } },
    sums: () => Promise.resolve(sumSqlite(file)),
  }
}

function seedSqlite(file: string, options: SeedOptions): void {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA synchronous = OFF; BEGIN')
  options.onRows(0)
  const insert = db.prepare(`INSERT INTO links (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
  for (let i = 0; i < options.links; i++) {
    const { code, longUrl, createdAtMs, expiresAtMs, ...record } = recordAt(i, options)
    const { creatorId, writerId, disabledAtMs, deletedAtMs } = record
    const values = [creatorId, writerId, disabledAtMs, deletedAtMs]
    insert.run(code, longUrl, createdAtMs, expiresAtMs, ...values)
    if ((i + 1) % PROGRESS_ROWS === 0) options.onRows(i + 1)
  }
  db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  options.onRows(options.links)
}

function sumSqlite(file: string): TableSums {
  const db = new DatabaseSync(file, { readOnly: true })
  const summer = createTableSummer()
  for (const row of db.prepare(`SELECT ${COLUMNS} FROM links`).iterate()) {
    summer.add({
      code: String(row['short_code']),
      longUrl: row['long_url'] === null ? null : String(row['long_url']),
      createdAtMs: Number(row['created_at']),
      expiresAtMs: numberOf(row['expires_at']),
      creatorId: numberOf(row['creator_id']),
      writerId: String(row['writer_id']),
      disabledAtMs: numberOf(row['disabled_at']),
      deletedAtMs: numberOf(row['deleted_at']),
    })
  }
  db.close()
  return summer.result()
}

const numberOf = (value: unknown) => (value === null ? null : Number(value))
