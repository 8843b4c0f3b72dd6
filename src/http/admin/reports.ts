// `GET /admin/reports` and `GET /admin/reports/{id}`: reports of abuse, in pages, newest first. The
// API does not filter by code or reason: each page reads a bounded number of reports.
import type { Request, RequestHandler } from 'express'
import * as z from 'zod'
import { isReportId, receivedAtMs, type Report } from '../../links/report.ts'
import { REPORT_PAGE_MAX, type ReportRange, type ReportStore } from '../../links/report-store.ts'
import { resultOrFailed } from '../../resilience/retry-until-deadline.ts'
import { invalidRequest } from '../field-faults.ts'
import { type FieldFault, type Problem, sendProblem } from '../problem.ts'

const LIMIT_DEFAULT = 50
const names: ReadonlySet<string> = new Set(['before', 'since', 'limit'])
const timeSchema = z.union([z.iso.datetime({ offset: true }), z.iso.date()])
const notFound: Problem = { name: 'not-found', detail: 'No report has this id, or it has expired' }
const unavailable: Problem = {
  name: 'store-unavailable',
  detail: 'The store has not returned the reports: retry the request',
}

/** Responds with a page of reports. */
export function listReports(reports: Pick<ReportStore, 'list'>, baseUrl: string): RequestHandler {
  return async (req, res) => {
    const range = parseRange(req.url)
    if ('fault' in range) {
      sendProblem(res, invalidRequest([range.fault]), baseUrl)
      return
    }
    const listed = await resultOrFailed(reports.list(range))
    if (listed === 'failed') {
      sendProblem(res, unavailable, baseUrl)
      return
    }
    const next = listed.length < range.max ? null : (listed.at(-1)?.id ?? null)
    res.set('Cache-Control', 'no-store').json({ reports: listed.map(renderReport), next })
  }
}

/** Responds with one report. */
export function showReport(
  reports: Pick<ReportStore, 'find'>,
  baseUrl: string,
): RequestHandler<{ id: string }> {
  return async (req: Request<{ id: string }>, res) => {
    const { id } = req.params
    const report = isReportId(id) ? await resultOrFailed(reports.find(id)) : undefined
    if (report === undefined) sendProblem(res, notFound, baseUrl)
    else if (report === 'failed') sendProblem(res, unavailable, baseUrl)
    else res.set('Cache-Control', 'no-store').json(renderReport(report))
  }
}

/** The range that the query in `url` selects, or why it selects none. */
function parseRange(url: string): ReportRange | { readonly fault: FieldFault } {
  const { searchParams } = new URL(url, 'http://localhost')
  for (const name of searchParams.keys()) {
    if (!names.has(name)) {
      const cause = `${JSON.stringify(name)} is unknown: allowed are before, since and limit`
      return faultOf('unknown-field', cause)
    }
    if (searchParams.getAll(name).length > 1)
      return faultOf('duplicate', `${name} occurs more than once`)
  }
  const before = searchParams.get('before') ?? undefined
  if (before !== undefined && !isReportId(before)) {
    const cause = `before must be the id of a report: it is ${JSON.stringify(before)}`
    return faultOf('invalid-type', cause)
  }
  const since = searchParams.get('since') ?? undefined
  if (since !== undefined && !timeSchema.safeParse(since).success) {
    const cause = `since must be a time in RFC 3339: it is ${JSON.stringify(since)}`
    return faultOf('invalid-type', cause)
  }
  const limit = searchParams.get('limit') ?? String(LIMIT_DEFAULT)
  const max = /^\d{1,9}$/.test(limit) ? Number(limit) : 0
  if (max < 1 || max > REPORT_PAGE_MAX) {
    const allowed = `an integer from 1 to ${REPORT_PAGE_MAX}`
    return faultOf('out-of-range', `limit must be ${allowed}: it is ${JSON.stringify(limit)}`)
  }
  return { before, sinceMs: since === undefined ? undefined : Date.parse(since), max }
}

/** The parameters are not in the body: as for headers, the pointer is empty. */
function faultOf(code: string, cause: string) {
  return { fault: { pointer: '', code, detail: `Cannot list reports: ${cause}` } }
}

function renderReport({ id, code, reason, details, contact }: Report) {
  const receivedAt = new Date(receivedAtMs(id)).toISOString()
  return { id, received_at: receivedAt, short_code: code, reason, details, contact }
}
