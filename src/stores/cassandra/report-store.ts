// Reports in Cassandra, expired by TTL: one partition for each UTC day. The number of reports of a
// day is in a static column, which each insert increments in the same conditional batch.
// Therefore concurrent inserts cannot exceed the bound, and only stored reports are counted.
import {
  dayOf,
  idBoundAt,
  idBoundOfDay,
  receivedAtMs,
  type Report,
  REPORT_TTL_MS,
  type ReportReason,
} from '../../links/report.ts'
import {
  type ReportRange,
  REPORTS_PER_DAY_MAX,
  type ReportStore,
} from '../../links/report-store.ts'
import { type Clock, monotonicMs, within } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { type Attempted, retryUnknown } from './retry-unknown.ts'
import { integerOf, type Row, stringOf, wasApplied } from './row.ts'
import { kindOptions } from './statement-kinds.ts'

const COLUMNS = 'id, short_code, reason, details, contact'
const FIND = `SELECT ${COLUMNS} FROM reports WHERE day = ? AND id = ?`
const LIST = `SELECT ${COLUMNS} FROM reports WHERE day = ? AND id >= ? AND id < ? LIMIT ?`
const READ_STORED = 'SELECT DISTINCT day, stored FROM reports WHERE day = ?'
const INSERT = `BEGIN BATCH
  UPDATE reports SET stored = ? WHERE day = ? IF stored = ?;
  INSERT INTO reports (day, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS;
  APPLY BATCH`

/** The maximum number of days that are read in parallel; most days have few reports. */
const DAYS_PARALLEL_MAX = 8
/** The deadline of a whole page of reports: that of one statement that reads a page. */
const LIST_MS_MAX = kindOptions['page-read'].deadlineMs

/** Creates the store in a keyspace with the migrated schema; `nowMs` determines the oldest day. */
export function createCassandraReportStore(
  cassandra: CassandraSession,
  nowMs: Clock = Date.now,
  perDayMax = REPORTS_PER_DAY_MAX,
): ReportStore {
  const isStored = async (day: number, id: string) => {
    const rows = await cassandra.execute('serial-read', FIND, [day, id])
    return rows.length > 0
  }
  const tryInsert = async (report: Report, attempt: number): Promise<Inserted> => {
    const { id, code, reason, details, contact } = report
    const day = dayOf(receivedAtMs(id))
    // An earlier insert, or an attempt of unknown outcome, may have stored it.
    if (attempt > 0 && (await isStored(day, id))) return { done: 'stored' }
    const [row] = await cassandra.execute('serial-read', READ_STORED, [day])
    const stored = row?.['stored'] == null ? null : integerOf(row['stored'])
    if ((stored ?? 0) >= perDayMax) return { done: (await isStored(day, id)) ? 'stored' : 'full' }
    const strings = [code, reason, details ?? undefined, contact ?? undefined]
    const values = [(stored ?? 0) + 1, day, stored, day, id, ...strings]
    const [result] = await cassandra.execute('lwt', INSERT, values)
    return wasApplied(result) ? { done: 'stored' } : 'retry'
  }
  return {
    insert(report) {
      let attempt = 0
      return retryUnknown(() => tryInsert(report, attempt++))
    },
    async find(id) {
      const [row] = await cassandra.execute('majority-read', FIND, [dayOf(receivedAtMs(id)), id])
      return row && reportOf(row)
    },
    list: (page) => list(cassandra, page, nowMs()),
  }
}

type Inserted = Attempted<'stored' | 'full'>

/**
 * Reads days, newest first, until the page is full or the oldest day is read. Throws StoreError at
 * its deadline. A `before` in the future has no effect.
 */
async function list(
  cassandra: CassandraSession,
  { before, sinceMs = 0, max }: ReportRange,
  nowMs: number,
): Promise<readonly Report[]> {
  const fromMs = Math.max(sinceMs, nowMs - REPORT_TTL_MS)
  const beforeMs = before === undefined ? Infinity : receivedAtMs(before)
  const deadlineMs = monotonicMs() + LIST_MS_MAX
  const reports: Report[] = []
  let newestDay = dayOf(Math.min(nowMs, beforeMs))
  // A busy day fills the page: the first read is of one day, and each next one of twice as many.
  let parallel = 1
  while (newestDay >= dayOf(fromMs) && reports.length < max) {
    const missing = max - reports.length
    const readDay = (day: number) => {
      const endId = before !== undefined && day === dayOf(beforeMs) ? before : undefined
      const bounds = [idBoundAt(fromMs), endId ?? idBoundOfDay(day + 1)]
      return cassandra.execute('page-read', LIST, [day, ...bounds, missing])
    }
    const days = Array.from({ length: parallel }, (_, i) => newestDay - i)
    const leftMs = Math.max(0, deadlineMs - monotonicMs())
    const rows = await within(leftMs, Promise.all(days.map(readDay)), listTimeout)
    reports.push(
      ...rows
        .flat()
        .map(reportOf)
        .filter((report) => report !== undefined),
    )
    newestDay -= parallel
    parallel = Math.min(2 * parallel, DAYS_PARALLEL_MAX)
  }
  return reports.slice(0, max)
}

function listTimeout(): StoreError {
  const message = `Cassandra has not returned a page of reports within ${LIST_MS_MAX} ms`
  return new StoreError(message, { outcome: 'not-done' })
}

/** `undefined` for a partly expired row: each of its cells expires separately. */
function reportOf(row: Row): Report | undefined {
  const { short_code: code, reason, details, contact } = row
  if (code == null || reason == null) return undefined
  return {
    id: stringOf(row['id']),
    code: stringOf(code),
    reason: stringOf(reason) as ReportReason, // only `insert` writes it
    details: details == null ? null : stringOf(details),
    contact: contact == null ? null : stringOf(contact),
  }
}
