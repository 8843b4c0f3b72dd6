// Bounds the load that reports put on the store: each process inserts few at a time, and none on a
// day whose limit is reached.
import { dayOf, receivedAtMs, type Report } from '../../links/report.ts'
import type { ReportStore } from '../../links/report-store.ts'

/** Concurrent inserts: in Cassandra they contend for the row that counts the reports of a day. */
const CONCURRENT_MAX = 4

/** Inserts a report; `busy`: it was not stored, because too many inserts are in flight. */
export type InsertReport = (report: Report) => Promise<'stored' | 'full' | 'busy'>

/** Creates the function that inserts reports within the bounds. */
export function boundReportInserts(reports: Pick<ReportStore, 'insert'>): InsertReport {
  let inFlight = 0
  let fullDay: number | undefined
  return async (report) => {
    const day = dayOf(receivedAtMs(report.id))
    if (day === fullDay) return 'full'
    if (inFlight >= CONCURRENT_MAX) return 'busy'
    inFlight++
    try {
      const result = await reports.insert(report)
      if (result === 'full') fullDay = day
      return result
    } finally {
      inFlight--
    }
  }
}
