// Intents in SQLite. An intent older than INTENT_TTL_MS counts as absent, swept or not.
import { type Intent, INTENT_TTL_MS, type IntentStore } from '../../links/intent-store.ts'
import type { SweptStore } from '../../links/link-store.ts'
import type { Clock } from '../../resilience/deadline.ts'
import type { Database } from './database.ts'
import { integerOf, numberOf, type Row, stringOf } from './row.ts'

/** The intents of an open database; `nowMs` determines their age. */
export function createSqliteIntentStore(db: Database, nowMs: Clock): IntentStore & SweptStore {
  const expiredMs = () => nowMs() - INTENT_TTL_MS
  return {
    async insertIfAbsent(intent) {
      const row = await db.writer.run('insertIntent', { ...intent, expiredMs: expiredMs() })
      return row === undefined ? intent : intentOf(row)
    },
    async readSerial(keyHash) {
      const row = await db.writer.run('readIntent', { keyHash, expiredMs: expiredMs() })
      return row && intentOf(row)
    },
    async move({ intent, to }) {
      const row = await db.writer.run('moveIntent', { ...intent, to, expiredMs: expiredMs() })
      return row && intentOf(row)
    },
    async deleteExpired({ beforeMs, max }) {
      const sweep = { expiredMs: beforeMs - INTENT_TTL_MS, max }
      return integerOf((await db.writer.run('deleteExpiredIntents', sweep))?.['deleted'])
    },
  }
}

function intentOf(row: Row): Intent {
  return {
    keyHash: stringOf(row['key_hash']),
    bodyHash: stringOf(row['body_hash']),
    code: stringOf(row['short_code']),
    writerId: stringOf(row['writer_id']),
    createdAtMs: integerOf(row['created_at']),
    expiresAtMs: numberOf(row['expires_at']),
  }
}
