// GET /abuse and POST /abuse: the form with which people report abuse of a link. The response does
// not depend on whether the link exists. Nothing about the client is stored but what it enters.
import type { Request, Response } from 'express'
import { dayOf, newReportId } from '../../links/report.ts'
import { REPORTS_PER_DAY_MAX, type ReportStore } from '../../links/report-store.ts'
import { TARGET_LENGTH_MAX } from '../../links/target-url.ts'
import type { Clock } from '../../resilience/deadline.ts'
import { resultOrOutcome } from '../../resilience/retry-until-deadline.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type RequestLimits, setLimitHeaders } from '../limit-requests.ts'
import { type AbuseView, renderAbusePage, renderReportedPage } from '../pages/abuse.ts'
import { sendPage } from '../pages/send-page.ts'
import { sendProblem } from '../problem.ts'
import { bodyTooLarge, readBody } from '../read-body.ts'
import { abuseFormOf, parseAbuseForm, type ParsedAbuseForm } from './abuse-form.ts'
import { boundInserts, type InsertReport } from './abuse-insert.ts'
import { formType, notForm } from './decode-form.ts'
import { isEncoded } from './post-link.ts'

const DAY_SECONDS = 86_400

/** Dependencies of the route. */
export interface AbuseRouteDeps {
  readonly baseUrl: string
  /** The hosts of short links, as `parseHost` normalizes them. */
  readonly ownHosts: ReadonlySet<string>
  readonly reports: Pick<ReportStore, 'insert'>
  readonly nowMs: Clock
  readonly limits: Pick<RequestLimits, 'onReport'>
  readonly metrics: Pick<Metrics, 'reports'>
}

/** The handler of GET /abuse; the query `link` fills in the link. */
export function getAbuse() {
  return (req: Request, res: Response): void => {
    const { searchParams } = new URL(req.url, 'http://localhost')
    const link = searchParams.get('link')?.slice(0, TARGET_LENGTH_MAX)
    const body = renderAbusePage({ values: abuseFormOf(link), faults: {} })
    sendPage(res, { status: 200, body, cacheControl: 'no-cache' })
  }
}

/** Why the form did not store a report, and its response. */
interface Rejection extends AbuseView {
  readonly status: 403 | 413 | 422 | 429 | 503
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The handler of POST /abuse. */
export function postAbuse(deps: AbuseRouteDeps) {
  const insert = boundInserts(deps.reports)
  return async (req: Request, res: Response): Promise<void> => {
    const limited = deps.limits.onReport(req)
    setLimitHeaders(res, limited)
    if (!formType.test(req.headers['content-type'] ?? '') || isEncoded(req)) {
      sendProblem(res, { name: 'unsupported-media-type', detail: notForm }, deps.baseUrl)
      return
    }
    const bytes = await readBody(req, res)
    if (bytes === 'aborted') return
    if (bytes === 'too-large') {
      const message = bodyTooLarge.detail
      sendRejection(res, { status: 413, values: abuseFormOf(), faults: {}, message })
      return
    }
    const form = parseAbuseForm(bytes, deps.ownHosts)
    const { problem } = limited
    if (problem !== undefined) {
      const { detail: message, headers = {} } = problem
      sendRejection(res, { status: 429, values: form.entered, faults: {}, message, headers })
      return
    }
    const outcome = await reportFromForm({ ...deps, insert }, req, form)
    if (typeof outcome !== 'string') sendRejection(res, outcome)
    else sendPage(res, { status: 201, body: renderReportedPage(outcome), cacheControl: 'no-store' })
  }
}

/** The id of the stored report, or why none was stored. */
async function reportFromForm(
  { insert, nowMs, metrics }: AbuseRouteDeps & { readonly insert: InsertReport },
  { headers }: Request,
  { entered: values, parsed }: ParsedAbuseForm,
): Promise<string | Rejection> {
  if (!('report' in parsed)) return { status: 422, values, ...parsed }
  // Browsers set it, and no site can change it: without this check, a site could let its visitors
  // send reports. The person confirms the form with a click.
  if (headers['sec-fetch-site'] === 'cross-site') {
    return { status: 403, values, faults: {}, message: fromAnotherSite }
  }
  const unavailable = (message: string, seconds = 1): Rejection => {
    return { status: 503, values, faults: {}, message, headers: { 'Retry-After': `${seconds}` } }
  }
  const atMs = nowMs()
  const id = newReportId(atMs)
  const outcome = await resultOrOutcome(insert({ id, ...parsed.report }))
  switch (outcome) {
    case 'stored':
      metrics.reports.inc({ reason: parsed.report.reason })
      return id
    case 'full':
      return unavailable(full, secondsToNextDay(atMs))
    case 'busy':
      return unavailable(busy)
    case 'not-done':
      return unavailable(notStored)
    case 'unknown':
      return unavailable(perhapsStored)
  }
}

const fromAnotherSite = 'Another site sent this form: check it, then send it from this page.'
const busy = 'Too many reports arrive at this time, and this one was not stored: please retry.'
const notStored = 'The database is unavailable, and the report was not stored: please retry.'
const perhapsStored =
  'The database did not respond, and it is unknown whether the report was stored: please retry.'
const full =
  `This service stores at most ${REPORTS_PER_DAY_MAX} reports per day (UTC), and this limit is ` +
  'reached. The report was not stored: please retry tomorrow.'

function secondsToNextDay(ms: number): number {
  return Math.ceil((dayOf(ms) + 1) * DAY_SECONDS - ms / 1000)
}

function sendRejection(res: Response, { status, headers = {}, ...view }: Rejection): void {
  sendPage(res, { status, body: renderAbusePage(view), cacheControl: 'no-store', headers })
}
