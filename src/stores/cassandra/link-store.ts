// Links in Cassandra. The table `links` is written by conditional writes (LWT) alone, everywhere
// and for ever: a plain write can lose against them silently.
import { QUARANTINE_MS } from '../../links/expiry.ts'
import type { Link } from '../../links/link.ts'
import type { LinkStore, ReplicatedStore } from '../../links/link-store.ts'
import type { Clock } from '../../process/deadline.ts'
import type { CassandraSession } from './client.ts'
import { repeatUnknown, type Tried } from './repeat-unknown.ts'
import { integerOf, type Row, textOf, timeMsOf, uuidOf, wasApplied } from './row.ts'
import type { StatementKind } from './statement-kinds.ts'

/** Seconds that a cell can live at most; what must live longer is written without an end. */
const TTL_SECONDS_MAX = 630_720_000

/** Cassandra takes 0 as "for ever". */
const FOR_EVER = 0

/** Who holds a row without a writer: nobody who could claim it. */
const NOBODY = ''

const COLUMNS =
  'short_code, long_url, created_at, expires_at, creator_id, writer_id, disabled_at, deleted_at'
const READ = `SELECT ${COLUMNS} FROM links WHERE short_code = ?`
const READ_WITH_TTL = `SELECT ${COLUMNS}, TTL(writer_id) AS ttl_seconds
  FROM links WHERE short_code = ?`
const INSERT = `INSERT INTO links (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  IF NOT EXISTS USING TTL ?`
// Conditions name the writer, so that a row that is not there is not made.
const SET_DISABLED = `UPDATE links USING TTL ? SET disabled_at = ? WHERE short_code = ?
  IF writer_id = ? AND deleted_at = null AND disabled_at = ?`
// Every cell that stays is written anew, as each has a life of its own.
const ERASE = `UPDATE links USING TTL ${FOR_EVER} SET long_url = null, deleted_at = ?,
  writer_id = ?, created_at = ?, expires_at = ?, creator_id = ?, disabled_at = ?
  WHERE short_code = ? IF writer_id = ? AND deleted_at = null AND disabled_at = ?`

/** Links in a keyspace that has our tables. */
export function createCassandraLinkStore(
  cassandra: CassandraSession,
  nowMs: Clock = Date.now,
): LinkStore & ReplicatedStore {
  cassandra.warmUp([READ, INSERT])
  const read = async (kind: StatementKind, code: string) => {
    const [row] = await cassandra.execute(kind, READ, [code])
    return row && linkOf(row)
  }
  return {
    async insertIfAbsent(link) {
      const values = [...valuesOf(link), ttlSecondsOf(link, nowMs())]
      const [row] = await cassandra.execute('lwt', INSERT, values)
      if (wasApplied(row)) return link.writerId
      return uuidOf(row?.['writer_id']) ?? NOBODY
    },
    find: (code) => read('majority-read', code),
    findOnReplica: (code) => read('replica-read', code),
    readSerial: (code) => read('serial-read', code),
    setDisabled: (change) => repeatUnknown(() => trySetDisabled(cassandra, change)),
    erase: (change) => repeatUnknown(() => tryErase(cassandra, change)),
  }
}

type Change = Tried<Link | undefined>

async function readWithTtl(cassandra: CassandraSession, code: string) {
  const [row] = await cassandra.execute('serial-read', READ_WITH_TTL, [code])
  const link = row && linkOf(row)
  const ttl = row?.['ttl_seconds']
  // In its last second a cell says 0, which must not become "for ever".
  const ttlSeconds = ttl == null ? FOR_EVER : Math.max(1, integerOf(ttl))
  return { link, ttlSeconds }
}

async function trySetDisabled(
  cassandra: CassandraSession,
  { code, disabledAtMs }: { code: string; disabledAtMs: number | null },
): Promise<Change> {
  const { link, ttlSeconds } = await readWithTtl(cassandra, code)
  if (link?.deletedAtMs !== null) return { done: link } // none, or erased before
  if ((link.disabledAtMs === null) === (disabledAtMs === null)) return { done: link }
  const { writerId, disabledAtMs: before } = link
  const values = [ttlSeconds, timeOf(disabledAtMs), code, writerId, timeOf(before)]
  const [row] = await cassandra.execute('lwt', SET_DISABLED, values)
  return wasApplied(row) ? { done: { ...link, disabledAtMs } } : 'again'
}

async function tryErase(
  cassandra: CassandraSession,
  { code, deletedAtMs }: { code: string; deletedAtMs: number },
): Promise<Change> {
  const { link } = await readWithTtl(cassandra, code)
  if (link?.deletedAtMs !== null) return { done: link } // none, or erased before
  const { writerId, creatorId } = link
  const disabledAt = timeOf(link.disabledAtMs)
  const [row] = await cassandra.execute('lwt', ERASE, [
    timeOf(deletedAtMs),
    writerId,
    timeOf(link.createdAtMs),
    timeOf(link.expiresAtMs),
    creatorId,
    disabledAt,
    code,
    writerId,
    disabledAt,
  ])
  return wasApplied(row) ? { done: { ...link, longUrl: null, deletedAtMs } } : 'again'
}

/** How long the row is kept: until the link ends, and its quarantine after that. */
function ttlSecondsOf({ expiresAtMs }: Link, nowMs: number): number {
  if (expiresAtMs === null) return FOR_EVER
  const seconds = Math.ceil((expiresAtMs + QUARANTINE_MS - nowMs) / 1000)
  return seconds > TTL_SECONDS_MAX ? FOR_EVER : Math.max(1, seconds)
}

function timeOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}

/** Values in the order of COLUMNS; what is absent is left out, for a null would be a tombstone. */
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

/** `undefined` for a row without a writer: what is left of one for a moment when its life ends. */
function linkOf(row: Row): Link | undefined {
  const writerId = uuidOf(row['writer_id'])
  const createdAtMs = timeMsOf(row['created_at'])
  if (writerId === null || createdAtMs === null) return undefined
  const { long_url: longUrl, creator_id: creatorId } = row
  return {
    code: textOf(row['short_code']),
    longUrl: longUrl == null ? null : textOf(longUrl),
    createdAtMs,
    expiresAtMs: timeMsOf(row['expires_at']),
    creatorId: typeof creatorId === 'bigint' ? creatorId : null,
    writerId,
    disabledAtMs: timeMsOf(row['disabled_at']),
    deletedAtMs: timeMsOf(row['deleted_at']),
  }
}
