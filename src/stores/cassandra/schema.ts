// The tables, as forward-only migration steps. A released step never changes; each version of the
// code also runs on the schema of the next version.
import { createHash } from 'node:crypto'

/** One migration step. Statements use the placeholder `KEYSPACE.` before each table. */
export interface Migration {
  /** From 1, without gaps. */
  readonly version: number
  readonly about: string
  /** Each is idempotent. */
  readonly statements: readonly string[]
}

const HOUR_SECONDS = 3600
const DAY_SECONDS = 24 * HOUR_SECONDS

/**
 * Rows of `links` are read by key far more often than written. Compaction therefore uses levels,
 * each ten times as large as the one before, so that a read touches few files. The next compaction
 * of a file drops its expired rows. A read decompresses whole chunks, which are therefore small.
 */
const READ_OFTEN = `compaction = {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L10',
    'target_sstable_size': '256MiB', 'base_shard_count': '8',
    'unchecked_tombstone_compaction': 'true'}
  AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': '4'}`
const WRITTEN_OFTEN = `compaction = {'class': 'UnifiedCompactionStrategy',
  'scaling_parameters': 'T4', 'unchecked_tombstone_compaction': 'true'}`
const SMALL = `compaction = {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T4'}`

/** Repair must propagate deletions to every replica within this time. */
const GRACE_SECONDS = 10 * DAY_SECONDS
/**
 * For rows that are never deleted, only expire: longer than Cassandra stores hints for a down node
 * (3 hours by default).
 */
const EXPIRING_GRACE_SECONDS = 6 * HOUR_SECONDS
/** How long reports of abuse are kept: REPORT_TTL_MS. */
const REPORT_SECONDS = 90 * DAY_SECONDS

/** Every step, in order. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    about: 'links, pools of codes, intents',
    statements: [
      `CREATE TABLE IF NOT EXISTS KEYSPACE.links (
        short_code text PRIMARY KEY,
        long_url text,
        created_at timestamp,
        expires_at timestamp,
        creator_id bigint,
        writer_id uuid,
        disabled_at timestamp,
        deleted_at timestamp
      ) WITH ${READ_OFTEN} AND gc_grace_seconds = ${GRACE_SECONDS}
        AND comment = 'written only by conditional writes'`,
      `CREATE TABLE IF NOT EXISTS KEYSPACE.code_pools (
        pool text PRIMARY KEY,
        pool_number int,
        minted bigint,
        claimed bigint,
        writer_id uuid,
        secret_fingerprint text,
        owner text,
        low_water bigint,
        target bigint
      ) WITH ${SMALL} AND gc_grace_seconds = ${GRACE_SECONDS}
        AND comment = 'written only by conditional writes'`,
      `CREATE TABLE IF NOT EXISTS KEYSPACE.code_pool_numbers (
        pool_number int PRIMARY KEY,
        pool text
      ) WITH ${SMALL} AND gc_grace_seconds = ${GRACE_SECONDS}
        AND comment = 'each number is assigned at most once'`,
      `CREATE TABLE IF NOT EXISTS KEYSPACE.code_blocks (
        pool text,
        seq bigint,
        codes blob,
        PRIMARY KEY ((pool, seq))
      ) WITH ${WRITTEN_OFTEN} AND gc_grace_seconds = ${GRACE_SECONDS}
        AND comment = 'a block is deleted after its claim'`,
      `CREATE TABLE IF NOT EXISTS KEYSPACE.idempotent_creates (
        key_hash text PRIMARY KEY,
        body_hash text,
        short_code text,
        writer_id uuid,
        created_at timestamp,
        expires_at timestamp
      ) WITH ${WRITTEN_OFTEN} AND gc_grace_seconds = ${EXPIRING_GRACE_SECONDS}
        AND comment = 'every row expires'`,
    ],
  },
  {
    version: 2,
    about: 'the id of the last change of a link, so that a delayed older change does not apply',
    statements: ['ALTER TABLE KEYSPACE.links ADD IF NOT EXISTS change_id uuid'],
  },
  {
    version: 3,
    about: 'reports of abuse',
    statements: [
      `CREATE TABLE IF NOT EXISTS KEYSPACE.reports (
        day int,
        id text,
        stored int static,
        short_code text,
        reason text,
        details text,
        contact text,
        PRIMARY KEY (day, id)
      ) WITH CLUSTERING ORDER BY (id DESC) AND ${WRITTEN_OFTEN}
        AND default_time_to_live = ${REPORT_SECONDS}
        AND gc_grace_seconds = ${EXPIRING_GRACE_SECONDS}
        AND comment = 'written only by conditional writes; every row expires'`,
    ],
  },
]

/** The minimum schema version of this code. */
export const schemaVersion = Math.max(...migrations.map(({ version }) => version))

/**
 * The statement that creates the table of applied steps, which also holds the migration lock. It
 * runs without the lock, so the table's id is derived from its name: concurrent runs on two nodes
 * create the same table.
 */
export function createMigrationsTable(keyspace: string): string {
  return `CREATE TABLE IF NOT EXISTS ${keyspace}.schema_migrations (
      version int PRIMARY KEY,
      about text,
      applied_at timestamp,
      holder uuid
    ) WITH id = ${tableId(keyspace)} AND ${SMALL} AND gc_grace_seconds = ${GRACE_SECONDS}`
}

function tableId(keyspace: string): string {
  const hash = createHash('sha256').update(`curtail ${keyspace}.schema_migrations`).digest('hex')
  const digits = (from: number, to: number) => hash.slice(from, to)
  return `${digits(0, 8)}-${digits(8, 12)}-5${digits(13, 16)}-8${digits(17, 20)}-${digits(20, 32)}`
}

/** The statement that creates a keyspace. */
export function createKeyspace(
  keyspace: string,
  replication: readonly { readonly dc: string; readonly replicas: number | string }[],
): string {
  const each = replication.map(({ dc, replicas }) => `'${dc}': ${replicas}`).join(', ')
  return (
    `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = ` +
    `{'class': 'NetworkTopologyStrategy', ${each}}`
  )
}
