// The statements that the writer runs, by name. A whole group shares one transaction, so no
// statement may fail because of its own data: a missing or taken row is a result, not an error.

/** One operation: its result is the row that `read` finds after `write` has run. */
export interface Operation {
  readonly write?: string
  readonly read?: string
  /** `unchanged`: reads only if the write changed nothing; otherwise the result is no row. */
  readonly readWhen?: 'unchanged'
}

const LINK =
  'short_code, long_url, created_at, expires_at, creator_id, writer_id, disabled_at, deleted_at'
const POOL = 'pool, pool_number, minted, claimed, writer_id, secret_fingerprint'
const REPORT = 'id, short_code, reason, details, contact'
const INTENT = 'key_hash, body_hash, short_code, writer_id, created_at, expires_at'

/** The columns as they are read: a creator id may exceed the integers that a number represents. */
const READ_COLUMNS = LINK.replace('creator_id', 'CAST(creator_id AS TEXT) AS creator_id')

/** Reads one link; also the statement of the hot path. */
export const READ_LINK = `SELECT ${READ_COLUMNS} FROM links WHERE short_code = :code`

/** Reads a page of links in the order of their codes. */
export const SCAN_LINKS = `SELECT ${READ_COLUMNS} FROM links
  WHERE short_code > :after ORDER BY short_code LIMIT :max`

/** Reads one report that has not expired. */
export const READ_REPORT = `SELECT ${REPORT} FROM reports WHERE id = :id AND id >= :fromId`

/** Reads a page of reports, newest first. */
export const LIST_REPORTS = `SELECT ${REPORT} FROM reports
  WHERE id < :before AND id >= :fromId ORDER BY id DESC LIMIT :max`

/** Reads a row that always exists. */
export const READ_PROBE = 'SELECT 1 AS one FROM code_pools LIMIT 1'

const READ_BLOCK = 'SELECT codes FROM code_blocks WHERE pool = :pool AND seq = :seq'

const READ_INTENT = `SELECT ${INTENT} FROM idempotent_creates
  WHERE key_hash = :keyHash AND created_at > :expiredMs`

/** All operations. Parameters are named; a statement ignores those that it does not name. */
export const operations = {
  insertLink: {
    write: `INSERT INTO links (${LINK}) VALUES (:code, :longUrl, :createdAtMs, :expiresAtMs,
      :creatorId, :writerId, :disabledAtMs, :deletedAtMs) ON CONFLICT DO NOTHING`,
    read: 'SELECT writer_id FROM links WHERE short_code = :code',
    readWhen: 'unchanged',
  },
  readLink: { read: READ_LINK },
  setDisabled: {
    write: `UPDATE links SET
        disabled_at = iif(:disabledAtMs IS NULL, NULL, ifnull(disabled_at, :disabledAtMs))
      WHERE short_code = :code AND deleted_at IS NULL`,
    read: READ_LINK,
  },
  eraseLink: {
    write: `UPDATE links SET long_url = NULL, deleted_at = ifnull(deleted_at, :deletedAtMs)
      WHERE short_code = :code`,
    read: READ_LINK,
  },
  deleteExpiredLinks: {
    write: `DELETE FROM links WHERE short_code IN (SELECT short_code FROM links
      WHERE expires_at < :beforeMs AND expires_at IS NOT NULL AND deleted_at IS NULL LIMIT :max)`,
    read: 'SELECT changes() AS deleted',
  },
  insertIntent: {
    write: `INSERT INTO idempotent_creates (${INTENT})
      VALUES (:keyHash, :bodyHash, :code, :writerId, :createdAtMs, :expiresAtMs)
      ON CONFLICT DO UPDATE SET body_hash = excluded.body_hash, short_code = excluded.short_code,
        writer_id = excluded.writer_id, created_at = excluded.created_at,
        expires_at = excluded.expires_at
      WHERE created_at <= :expiredMs`,
    read: READ_INTENT,
  },
  readIntent: {
    read: READ_INTENT,
  },
  moveIntent: {
    write: `UPDATE idempotent_creates SET short_code = :to
      WHERE key_hash = :keyHash AND writer_id = :writerId AND short_code = :code
        AND created_at > :expiredMs`,
    read: READ_INTENT,
  },
  deleteExpiredIntents: {
    write: `DELETE FROM idempotent_creates WHERE key_hash IN (SELECT key_hash
      FROM idempotent_creates WHERE created_at <= :expiredMs LIMIT :max)`,
    read: 'SELECT changes() AS deleted',
  },
  /** The count reads only the index of the ids. */
  insertReport: {
    write: `INSERT INTO reports (${REPORT}) SELECT :id, :code, :reason, :details, :contact
      WHERE (SELECT count(*) FROM reports WHERE id >= :dayId AND id < :nextDayId) < :perDayMax
      ON CONFLICT DO NOTHING`,
    read: 'SELECT id FROM reports WHERE id = :id',
  },
  deleteExpiredReports: {
    write: `DELETE FROM reports WHERE id IN (SELECT id FROM reports
      WHERE id < :fromId LIMIT :max)`,
    read: 'SELECT changes() AS deleted',
  },
  insertPool: {
    write: `INSERT INTO code_pools (${POOL})
      SELECT :pool, count(*), 0, 0, NULL, :secretFingerprint FROM code_pools
      WHERE true ON CONFLICT (pool) DO NOTHING`,
    read: `SELECT ${POOL} FROM code_pools WHERE pool = :pool`,
  },
  readPool: { read: `SELECT ${POOL} FROM code_pools WHERE pool = :pool` },
  putBlock: {
    write: `INSERT INTO code_blocks (pool, seq, codes) VALUES (:pool, :seq, :codes)
      ON CONFLICT DO UPDATE SET codes = excluded.codes`,
  },
  advanceMinted: {
    write: 'UPDATE code_pools SET minted = :to WHERE pool = :pool AND minted = :from',
    read: `SELECT ${POOL} FROM code_pools WHERE pool = :pool`,
  },
  claimNext: {
    write: `UPDATE code_pools SET claimed = :from + 1, writer_id = :writerId
      WHERE pool = :pool AND claimed = :from AND claimed < minted`,
    read: `SELECT ${POOL} FROM code_pools WHERE pool = :pool`,
  },
  readBlock: { read: READ_BLOCK },
  deleteBlock: { write: 'DELETE FROM code_blocks WHERE pool = :pool AND seq = :seq' },
  insertSecret: {
    write: 'INSERT INTO secrets (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING',
    read: 'SELECT value FROM secrets WHERE name = :name',
  },
  /** Writes without a change, to check whether writes work. */
  probe: { write: 'UPDATE code_pools SET minted = minted' },
} as const satisfies Readonly<Record<string, Operation>>

/** Name of an operation. */
export type OperationName = keyof typeof operations
