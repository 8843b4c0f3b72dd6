// Links in Cassandra. The table `links` is written by conditional writes (LWT) alone, everywhere
// and for ever: a plain write can lose against them silently.
import { randomUUID } from 'node:crypto'
import { QUARANTINE_MS } from '../../links/expiry.ts'
import type { Link } from '../../links/link.ts'
import type { LinkStore, ReplicatedStore } from '../../links/link-store.ts'
import type { Clock, Pause } from '../../resilience/deadline.ts'
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
const READ_STATE = `SELECT ${COLUMNS}, change_id, TTL(writer_id) AS ttl_seconds
  FROM links WHERE short_code = ?`
const INSERT = `INSERT INTO links (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  IF NOT EXISTS USING TTL ?`
// A change holds for the state that it has read and no other: its conditions name the writer, so
// that a row that is not there is not made, and the change before it. A write that is long on its
// way, until the link is again as it was, so comes too late.
const SAME_STATE = 'writer_id = ? AND deleted_at = null AND disabled_at = ? AND change_id = ?'
const SET_DISABLED = `UPDATE links USING TTL ? SET disabled_at = ?, change_id = ?
  WHERE short_code = ? IF ${SAME_STATE}`
// Every cell that stays is written anew, as each has a life of its own.
const ERASE = `UPDATE links USING TTL ${FOR_EVER} SET long_url = null, deleted_at = ?,
  change_id = ?, writer_id = ?, created_at = ?, expires_at = ?, creator_id = ?, disabled_at = ?
  WHERE short_code = ? IF ${SAME_STATE}`

/** What tests bring of their own. */
export interface CassandraLinkStoreOptions {
  readonly nowMs?: Clock
  readonly newChangeId?: () => string
  /** How to wait before a change is tried again. */
  readonly pause?: Pause
}

/** Links in a keyspace that has our tables. */
export function createCassandraLinkStore(
  cassandra: CassandraSession,
  options: CassandraLinkStoreOptions = {},
): LinkStore & ReplicatedStore {
  const { nowMs = Date.now, newChangeId = randomUUID, pause } = options
  cassandra.warmUp([READ, INSERT])
  const read = async (kind: StatementKind, code: string) => {
    const [row] = await cassandra.execute(kind, READ, [code])
    return row && linkOf(row)
  }
  return {
    async insertIfAbsent(link) {
      const values = valuesOf(link)
      values.push(ttlSecondsOf(link, nowMs()))
      const [row] = await cassandra.execute('lwt', INSERT, values)
      if (wasApplied(row)) return link.writerId
      return uuidOf(row?.['writer_id']) ?? NOBODY
    },
    find: (code) => read('majority-read', code),
    findOnReplica: (code) => read('replica-read', code),
    readSerial: (code) => read('serial-read', code),
    setDisabled(change) {
      const id = newChangeId()
      return repeatUnknown(() => trySetDisabled(cassandra, { ...change, id }), pause)
    },
    erase(change) {
      const id = newChangeId()
      return repeatUnknown(() => tryErase(cassandra, { ...change, id }), pause)
    },
  }
}

type Change = Tried<Link | undefined>

async function readState(cassandra: CassandraSession, code: string) {
  const [row] = await cassandra.execute('serial-read', READ_STATE, [code])
  const link = row && linkOf(row)
  const ttl = row?.['ttl_seconds']
  // In its last second a cell says 0, which must not become "for ever".
  const ttlSeconds = ttl == null ? FOR_EVER : Math.max(1, integerOf(ttl))
  return { link, ttlSeconds, lastChange: uuidOf(row?.['change_id']) }
}

/** What must still be so where a change is done: SAME_STATE. */
function sameState(link: Link, lastChange: string | null): unknown[] {
  return [link.writerId, timeOf(link.disabledAtMs), lastChange]
}

/**
 * A link that is already as it shall be is written too: else an opposite change that was given up,
 * but is still on its way, could land after this one has been said to be done.
 */
async function trySetDisabled(
  cassandra: CassandraSession,
  { code, disabledAtMs, id }: { code: string; disabledAtMs: number | null; id: string },
): Promise<Change> {
  const { link, ttlSeconds, lastChange } = await readState(cassandra, code)
  if (link?.deletedAtMs !== null) return { done: link } // none, or erased before
  if (lastChange === id) return { done: link } // an earlier try has done it
  const atMs = disabledAtMs === null ? null : (link.disabledAtMs ?? disabledAtMs)
  const values = [ttlSeconds, timeOf(atMs), id, code, ...sameState(link, lastChange)]
  const [row] = await cassandra.execute('lwt', SET_DISABLED, values)
  return wasApplied(row) ? { done: { ...link, disabledAtMs: atMs } } : 'again'
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
