// Reports in SQLite. A report older than REPORT_TTL_MS counts as absent, swept or not.
import type { SweptStore } from '../../links/link-store.ts'
import {
  dayOf,
  idBoundAt,
  idBoundOfDay,
  receivedAtMs,
  type Report,
  REPORT_TTL_MS,
  type ReportReason,
} from '../../links/report.ts'
import { REPORTS_PER_DAY_MAX, type ReportStore } from '../../links/report-store.ts'
import type { Clock } from '../../resilience/deadline.ts'
import type { Database } from './database.ts'
import { LIST_REPORTS, READ_REPORT } from './operations.ts'
import { integerOf, type Row, stringOf } from './row.ts'

/** Sorts after every id. */
const AFTER_EVERY_ID = '~'

/** The reports of an open database; `nowMs` determines their age. */
export function createSqliteReportStore(
  db: Database,
  nowMs: Clock,
  perDayMax = REPORTS_PER_DAY_MAX,
): ReportStore & SweptStore {
  const findReport = db.prepareRead(READ_REPORT, reportOf)
  const listReports = db.prepareReadAll(LIST_REPORTS, reportOf)
  const oldestMs = () => nowMs() - REPORT_TTL_MS
  return {
    async insert(report) {
      const day = dayOf(receivedAtMs(report.id))
      const bounds = { dayId: idBoundOfDay(day), nextDayId: idBoundOfDay(day + 1), perDayMax }
      const stored = await db.writer.run('insertReport', { ...report, ...bounds })
      return stored === undefined ? 'full' : 'stored'
    },
    find: (id) => findReport({ id, fromId: idBoundAt(oldestMs()) }),
    list({ before = AFTER_EVERY_ID, sinceMs = 0, max }) {
      const fromId = idBoundAt(Math.max(sinceMs, oldestMs()))
      return listReports({ before, fromId, max })
    },
    async deleteExpired({ beforeMs, max }) {
      const sweep = { fromId: idBoundAt(beforeMs - REPORT_TTL_MS), max }
      return integerOf((await db.writer.run('deleteExpiredReports', sweep))?.['deleted'])
    },
  }
}

function reportOf(row: Row): Report {
  return {
    id: stringOf(row['id']),
    code: stringOf(row['short_code']),
    reason: stringOf(row['reason']) as ReportReason, // only `insert` writes it
    details: row['details'] === null ? null : stringOf(row['details']),
    contact: row['contact'] === null ? null : stringOf(row['contact']),
  }
}
