// Links in Cassandra. Every write to the table `links` must be conditional (LWT): a plain write can
// silently lose against an LWT.
import { randomUUID } from 'node:crypto'
import { QUARANTINE_MS } from '../../links/expiry.ts'
import type { Link } from '../../links/link.ts'
import type { LinkStore, ReplicatedStore, ScannedStore, ScanRange } from '../../links/link-store.ts'
import type { Clock } from '../../resilience/deadline.ts'
import { RejectedWriteError, StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { rejectionOf } from './failed-outcome.ts'
import { type Attempted, type RetryOptions, retryUnknown } from './retry-unknown.ts'
import { integerOf, type Row, stringOf, timeMsOf, uuidOf, wasApplied } from './row.ts'
import type { StatementKind } from './statement-kinds.ts'

/** Cassandra's maximum TTL in seconds; rows that must live longer have no TTL. */
const TTL_SECONDS_MAX = 630_720_000

/** A TTL of 0 means no expiry. */
const NO_TTL = 0

/** The writer of a row without a writer id; no claimer has this id. */
const NO_WRITER = ''

const COLUMNS =
  'short_code, long_url, created_at, expires_at, creator_id, writer_id, disabled_at, deleted_at'
const READ = `SELECT ${COLUMNS} FROM links WHERE short_code = ?`
const READ_STATE = `SELECT ${COLUMNS}, change_id, TTL(writer_id) AS ttl_seconds
  FROM links WHERE short_code = ?`
// Cassandra orders rows by token, and rows with the same token by the bytes of their keys.
const SCAN_FIRST = `SELECT ${COLUMNS} FROM links LIMIT ?`
const SCAN_SAME_TOKEN = `SELECT ${COLUMNS} FROM links WHERE token(short_code) = token(?)`
const SCAN_NEXT_TOKENS = `SELECT ${COLUMNS} FROM links WHERE token(short_code) > token(?) LIMIT ?`
const INSERT = `INSERT INTO links (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  IF NOT EXISTS USING TTL ?`
// A change applies only to the state that it has read. Its conditions include the writer, so that
// an update creates no row, and the previous change's id, so that a delayed write does not apply
// after the link has returned to that state.
const SAME_STATE = 'writer_id = ? AND deleted_at = null AND disabled_at = ? AND change_id = ?'
const SET_DISABLED = `UPDATE links USING TTL ? SET disabled_at = ?, change_id = ?
  WHERE short_code = ? IF ${SAME_STATE}`
// Every remaining cell is rewritten, because each has its own TTL.
const ERASE = `UPDATE links USING TTL ${NO_TTL} SET long_url = null, deleted_at = ?,
  change_id = ?, writer_id = ?, created_at = ?, expires_at = ?, creator_id = ?, disabled_at = ?
  WHERE short_code = ? IF ${SAME_STATE}`

/** Options that tests replace. */
export interface CassandraLinkStoreOptions extends RetryOptions {
  readonly nowMs?: Clock
  readonly newChangeId?: () => string
}

/** Creates the store in a keyspace with the migrated schema. */
export function createCassandraLinkStore(
  cassandra: CassandraSession,
  options: CassandraLinkStoreOptions = {},
): LinkStore & ReplicatedStore & ScannedStore {
  const { nowMs = Date.now, newChangeId = randomUUID } = options
  cassandra.warmUp([READ, INSERT])
  const read = async (kind: StatementKind, code: string) => {
    const [row] = await cassandra.execute(kind, READ, [code])
    return row && linkOf(row)
  }
  return {
    async insertIfAbsent(link) {
      const values = valuesOf(link)
      values.push(ttlSecondsOf(link, nowMs()))
      const [row] = await cassandra.execute('lwt', INSERT, values).catch(rethrowInsert)
      if (wasApplied(row)) return link.writerId
      return uuidOf(row?.['writer_id']) ?? NO_WRITER
    },
    find: (code) => read('majority-read', code),
    findOnReplica: (code) => read('replica-read', code),
    readSerial: (code) => read('serial-read', code),
    scan: (page) => scan(cassandra, page),
    setDisabled(change) {
      const id = newChangeId()
      return retryUnknown(() => trySetDisabled(cassandra, { ...change, id }), options)
    },
    erase(change) {
      const id = newChangeId()
      return retryUnknown(() => tryErase(cassandra, { ...change, id }), options)
    },
  }
}

/** Cassandra's error for a TTL beyond 2038; none if its storage_compatibility_mode is NONE. */
const TTL_REJECTED = 'maximum supported expiration date'
const TTL_ALLOWED =
  'expires_at must be at most 2037-12-19: a link is kept for 31 days after it expires, and this ' +
  'Cassandra stores no row that expires after 2038-01-19 (storage_compatibility_mode)'

function rethrowInsert(error: unknown): never {
  const rejection = error instanceof StoreError ? rejectionOf(error.cause) : undefined
  if (rejection?.includes(TTL_REJECTED) !== true) throw error
  throw new RejectedWriteError(TTL_ALLOWED, error)
}

/** Partly expired rows, which contain no link, do not make a page incomplete. */
async function scan(cassandra: CassandraSession, { after, max }: ScanRange): Promise<Link[]> {
  const links: Link[] = []
  let cursor = after
  for (;;) {
    const missing = max - links.length
    const rows = await readRowsAfter(cassandra, { after: cursor, max: missing })
    links.push(...rows.map(linkOf).filter((link) => link !== undefined))
    if (rows.length < missing || links.length === max) return links
    cursor = codeOf(rows.at(-1))
  }
}

/** The first `max` rows after the code `after` in the order of the table. */
async function readRowsAfter(
  cassandra: CassandraSession,
  { after, max }: ScanRange,
): Promise<readonly Row[]> {
  if (after === undefined) return cassandra.execute('page-read', SCAN_FIRST, [max])
  const [sameToken, nextTokens] = await Promise.all([
    cassandra.execute('page-read', SCAN_SAME_TOKEN, [after]),
    cassandra.execute('page-read', SCAN_NEXT_TOKENS, [after, max]),
  ])
  return [...sameToken.filter((row) => codeOf(row) > after), ...nextTokens].slice(0, max)
}

function codeOf(row: Row | undefined): string {
  return stringOf(row?.['short_code'])
}

type Change = Attempted<Link | undefined>

async function readState(cassandra: CassandraSession, code: string) {
  const [row] = await cassandra.execute('serial-read', READ_STATE, [code])
  const link = row && linkOf(row)
  const ttl = row?.['ttl_seconds']
  // In a cell's last second TTL() returns 0, which must not be written as "no TTL".
  const ttlSeconds = ttl == null ? NO_TTL : Math.max(1, integerOf(ttl))
  return { link, ttlSeconds, lastChange: uuidOf(row?.['change_id']) }
}

/** Values of the conditions in SAME_STATE. */
function sameState(link: Link, lastChange: string | null): unknown[] {
  return [link.writerId, timeOf(link.disabledAtMs), lastChange]
}

/**
 * Writes even if the link already has the wanted state: otherwise an opposite change that timed
 * out but is still in flight could apply after this change is reported as done.
 */
async function trySetDisabled(
  cassandra: CassandraSession,
  { code, disabledAtMs, id }: { code: string; disabledAtMs: number | null; id: string },
): Promise<Change> {
  const { link, ttlSeconds, lastChange } = await readState(cassandra, code)
  if (link?.deletedAtMs !== null) return { done: link } // none, or erased before
  if (lastChange === id) return { done: link } // applied by an earlier attempt
  const atMs = disabledAtMs === null ? null : (link.disabledAtMs ?? disabledAtMs)
  const values = [ttlSeconds, timeOf(atMs), id, code, ...sameState(link, lastChange)]
  const [row] = await cassandra.execute('lwt', SET_DISABLED, values)
  return wasApplied(row) ? { done: { ...link, disabledAtMs: atMs } } : 'retry'
}

async function tryErase(
  cassandra: CassandraSession,
  { code, deletedAtMs, id }: { code: string; deletedAtMs: number; id: string },
): Promise<Change> {
  const { link, lastChange } = await readState(cassandra, code)
  if (link?.deletedAtMs !== null) return { done: link } // none, or erased before
  const { writerId, creatorId } = link
  const [row] = await cassandra.execute('lwt', ERASE, [
    timeOf(deletedAtMs),
    id,
    writerId,
    timeOf(link.createdAtMs),
    timeOf(link.expiresAtMs),
    creatorId,
    timeOf(link.disabledAtMs),
    code,
    ...sameState(link, lastChange),
  ])
  return wasApplied(row) ? { done: { ...link, longUrl: null, deletedAtMs } } : 'retry'
}

/** The row's TTL: until the link expires, plus its quarantine. A row without a target has none. */
function ttlSecondsOf({ longUrl, expiresAtMs }: Link, nowMs: number): number {
  if (expiresAtMs === null || longUrl === null) return NO_TTL
  const seconds = Math.ceil((expiresAtMs + QUARANTINE_MS - nowMs) / 1000)
  return seconds > TTL_SECONDS_MAX ? NO_TTL : Math.max(1, seconds)
}

function timeOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}

/** Values in the order of COLUMNS; `undefined` if absent, because a null writes a tombstone. */
function valuesOf(link: Link): unknown[] {
  return [
    link.code,
    link.longUrl ?? undefined,
    timeOf(link.createdAtMs),
    timeOf(link.expiresAtMs) ?? undefined,
    link.creatorId ?? undefined,
    link.writerId,
    timeOf(link.disabledAtMs) ?? undefined,
    timeOf(link.deletedAtMs) ?? undefined,
  ]
}

/** `undefined` for a row without a writer: it is partly expired. */
function linkOf(row: Row): Link | undefined {
  const writerId = uuidOf(row['writer_id'])
  const createdAtMs = timeMsOf(row['created_at'])
  if (writerId === null || createdAtMs === null) return undefined
  const { long_url: longUrl, creator_id: creatorId } = row
  return {
    code: stringOf(row['short_code']),
    longUrl: longUrl == null ? null : stringOf(longUrl),
    createdAtMs,
    expiresAtMs: timeMsOf(row['expires_at']),
    creatorId: typeof creatorId === 'bigint' ? creatorId : null,
    writerId,
    disabledAtMs: timeMsOf(row['disabled_at']),
    deletedAtMs: timeMsOf(row['deleted_at']),
  }
}
