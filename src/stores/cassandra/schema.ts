// The tables and how they came about, as forward-only steps. A step that has been released never
// changes; code of one version runs on the schema of the next.
import { createHash } from 'node:crypto'

/** One step of the schema. Statements name no keyspace: `KEYSPACE.` stands before each table. */
export interface Migration {
  /** From 1, without gaps. */
  readonly version: number
  readonly about: string
  /** Each may be run again after it has been done. */
  readonly statements: readonly string[]
}

const HOUR_SECONDS = 3600
const DAY_SECONDS = 24 * HOUR_SECONDS

/**
 * Rows of `links` are read by key far more than written: levels of tenfold size, so that a read
 * touches few files, in small chunks. What has expired goes at the next compaction that meets it.
 */
const READ_OFTEN = `compaction = {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L10',
    'target_sstable_size': '256MiB', 'base_shard_count': '8',
    'unchecked_tombstone_compaction': 'true'}
  AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': '4'}`
const WRITTEN_OFTEN = `compaction = {'class': 'UnifiedCompactionStrategy',
  'scaling_parameters': 'T4', 'unchecked_tombstone_compaction': 'true'}`
const SMALL = `compaction = {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T4'}`

/** Deletions are told to every replica by repair within this time. */
const GRACE_SECONDS = 10 * DAY_SECONDS
/** Rows that only ever expire need no longer than hints are kept for a node that is away. */
const EXPIRING_GRACE_SECONDS = 6 * HOUR_SECONDS

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
        AND comment = 'written by conditional writes alone'`,
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
        AND comment = 'written by conditional writes alone'`,
      `CREATE TABLE IF NOT EXISTS KEYSPACE.code_pool_numbers (
        pool_number int PRIMARY KEY,
        pool text
      ) WITH ${SMALL} AND gc_grace_seconds = ${GRACE_SECONDS}
        AND comment = 'each number is given once and never again'`,
      `CREATE TABLE IF NOT EXISTS KEYSPACE.code_blocks (
        pool text,
        seq bigint,
        codes blob,
        PRIMARY KEY ((pool, seq))
      ) WITH ${WRITTEN_OFTEN} AND gc_grace_seconds = ${GRACE_SECONDS}
        AND comment = 'a block goes when it is claimed'`,
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
    about: 'the last change of a link, so that an older one on its way comes too late',
    statements: ['ALTER TABLE KEYSPACE.links ADD IF NOT EXISTS change_id uuid'],
  },
]

/** The version of the schema that this code needs at least. */
export const schemaVersion = Math.max(...migrations.map(({ version }) => version))

/**
 * Makes the table that records the steps, and by which those who migrate take turns. It must be
 * made before turns can be taken: its id follows from its name, so that two who make it at once on
 * two nodes make the same table.
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
  const part = (from: number, to: number) => hash.slice(from, to)
  return `${part(0, 8)}-${part(8, 12)}-5${part(13, 16)}-8${part(17, 20)}-${part(20, 32)}`
}

/** The statement that makes a keyspace. */
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
