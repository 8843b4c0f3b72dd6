// Intents in Cassandra, expired by TTL. Written only by conditional writes.
import { type Intent, INTENT_TTL_MS, type IntentStore } from '../../links/intent-store.ts'
import type { Clock } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { type Row, stringOf, timeMsOf, uuidOf, wasApplied } from './row.ts'

const COLUMNS = 'key_hash, body_hash, short_code, writer_id, created_at, expires_at'
const READ = `SELECT ${COLUMNS} FROM idempotent_creates WHERE key_hash = ?`
const INSERT = `INSERT INTO idempotent_creates (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
  IF NOT EXISTS USING TTL ?`
const MOVE = `UPDATE idempotent_creates USING TTL ? SET short_code = ? WHERE key_hash = ?
  IF writer_id = ? AND short_code = ?`

/** Creates the store in a keyspace with the migrated schema; `nowMs` determines the TTLs. */
export function createCassandraIntentStore(
  cassandra: CassandraSession,
  nowMs: Clock = Date.now,
): IntentStore {
  cassandra.warmUp([READ, INSERT])
  const secondsLeft = ({ createdAtMs }: Intent) =>
    Math.ceil((createdAtMs + INTENT_TTL_MS - nowMs()) / 1000)
  const readSerial = async (keyHash: string) => {
    const [row] = await cassandra.execute('serial-read', READ, [keyHash])
    return row && intentOf(row)
  }
  return {
    readSerial,
    async insertIfAbsent(intent) {
      const { keyHash, bodyHash, code, writerId, createdAtMs, expiresAtMs } = intent
      const expiresAt = expiresAtMs === null ? undefined : new Date(expiresAtMs)
      const ttlSeconds = Math.max(1, secondsLeft(intent)) // 0 would mean no TTL
      const [row] = await cassandra.execute('lwt', INSERT, [
        keyHash,
        bodyHash,
        code,
        writerId,
        new Date(createdAtMs),
        expiresAt,
        ttlSeconds,
      ])
      return wasApplied(row) ? intent : intentOf(row ?? {})
    },
    async move({ intent, to }) {
      const { keyHash, writerId, code } = intent
      const ttlSeconds = secondsLeft(intent)
      if (ttlSeconds < 1) return readSerial(keyHash)
      const values = [ttlSeconds, to, keyHash, writerId, code]
      const [row] = await cassandra.execute('lwt', MOVE, values)
      return wasApplied(row) ? { ...intent, code: to } : readSerial(keyHash)
    },
  }
}

/** Throws StoreError, to be retried, for a partly expired row. */
function intentOf(row: Row): Intent {
  const writerId = uuidOf(row['writer_id'])
  const createdAtMs = timeMsOf(row['created_at'])
  const { short_code: code, body_hash: bodyHash } = row
  if (writerId === null || createdAtMs === null || code == null || bodyHash == null)
    throw new StoreError('an intent is partly expired', { outcome: 'unknown' })
  return {
    keyHash: stringOf(row['key_hash']),
    bodyHash: stringOf(bodyHash),
    code: stringOf(code),
    writerId,
    createdAtMs,
    expiresAtMs: timeMsOf(row['expires_at']),
  }
}
