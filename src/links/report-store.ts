// Interface of a store of reports. test/contract/report-store.ts tests every implementation. Faults
// of the store are StoreError.
import type { Report } from './report.ts'

/** The maximum number of reports that are stored on one UTC day, so that a flood is bounded. */
export const REPORTS_PER_DAY_MAX = 5000

/** The maximum number of reports in a page. */
export const REPORT_PAGE_MAX = 100

/** Selects a page of reports. */
export interface ReportRange {
  /** The id of the last report of the previous page; `undefined` for the first page. */
  readonly before: string | undefined
  /** Only reports that were received at this time or later; `undefined`: all. */
  readonly sinceMs: number | undefined
  /** 1 to REPORT_PAGE_MAX. */
  readonly max: number
}

/** Reports, each of which expires REPORT_TTL_MS after it was received. */
export interface ReportStore {
  /**
   * Stores a report completely or, if its day is full, not at all; durable once it resolves.
   * A retry with the same report stores it once.
   */
  insert(report: Report): Promise<'stored' | 'full'>
  /** Reads one report. */
  find(id: string): Promise<Report | undefined>
  /** Reads a page, newest first; a page of fewer than `max` reports is the last one. */
  list(range: ReportRange): Promise<readonly Report[]>
}
