// Reports in memory: for tests, and as the simplest reference for a store of reports.
import {
  dayOf,
  idBoundAt,
  receivedAtMs,
  type Report,
  REPORT_TTL_MS,
} from '../../../src/links/report.ts'
import { REPORTS_PER_DAY_MAX, type ReportStore } from '../../../src/links/report-store.ts'
import type { Clock } from '../../../src/resilience/deadline.ts'

/** Creates an empty store; `nowMs` determines when reports expire. */
export function createMemoryReportStore(
  nowMs: Clock = Date.now,
  perDayMax = REPORTS_PER_DAY_MAX,
): ReportStore {
  const stored = new Map<string, Report>()
  const current = () => {
    const oldestId = idBoundAt(nowMs() - REPORT_TTL_MS)
    return [...stored.values()].filter(({ id }) => id >= oldestId)
  }
  return {
    insert(report) {
      const day = dayOf(receivedAtMs(report.id))
      const ofDay = [...stored.keys()].filter((id) => dayOf(receivedAtMs(id)) === day)
      if (!stored.has(report.id) && ofDay.length >= perDayMax) return Promise.resolve('full')
      stored.set(report.id, report)
      return Promise.resolve('stored')
    },
    find: (id) => Promise.resolve(current().find((report) => report.id === id)),
    list({ before = '~', sinceMs = 0, max }) {
      const listed = current().filter(({ id }) => id < before && id >= idBoundAt(sinceMs))
      const newestFirst = listed.toSorted((a, b) => (a.id < b.id ? 1 : -1))
      return Promise.resolve(newestFirst.slice(0, max))
    },
  }
}
