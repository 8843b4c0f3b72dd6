// GET /abuse and POST /abuse: the form with which people report abuse of a link. The response does
// not depend on whether the link exists. Nothing about the client is stored except what it enters.
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
import type { Strings } from '../pages/strings/en.ts'
import { fill, stringsFor } from '../pages/strings/negotiate.ts'
import { sendProblem } from '../problem.ts'
import { readBody } from '../read-body.ts'
import { abuseFormOf, parseAbuseForm, type ParsedAbuseForm } from './abuse-form.ts'
import { boundReportInserts, type InsertReport } from './bound-report-inserts.ts'
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
    const strings = stringsFor(req)
    const body = renderAbusePage({ strings, values: abuseFormOf(link), faults: {} })
    sendPage(res, { status: 200, body, cacheControl: 'no-cache' })
  }
}

/** Why the form did not store a report, and the response. */
interface Rejection extends Omit<AbuseView, 'strings'> {
  readonly status: 403 | 413 | 422 | 429 | 503
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The handler of POST /abuse. */
export function postAbuse(deps: AbuseRouteDeps) {
  const insert = boundReportInserts(deps.reports)
  return async (req: Request, res: Response): Promise<void> => {
    const strings = stringsFor(req)
    const reject = (rejection: Rejection) => {
      sendRejection(res, rejection, strings)
    }
    const limited = deps.limits.onReport(req)
    setLimitHeaders(res, limited)
    if (!formType.test(req.headers['content-type'] ?? '') || isEncoded(req)) {
      sendProblem(res, { name: 'unsupported-media-type', detail: notForm }, deps.baseUrl)
      return
    }
    const bytes = await readBody(req, res)
    if (bytes === 'aborted') return
    if (bytes === 'too-large') {
      const message = strings.messages['body-too-large']
      reject({ status: 413, values: abuseFormOf(), faults: {}, message })
      return
    }
    const form = parseAbuseForm(bytes, { ownHosts: deps.ownHosts, strings })
    const { problem } = limited
    if (problem !== undefined) {
      const { headers = {} } = problem
      const seconds = headers['Retry-After'] ?? ''
      const message = fill(strings.messages['rate-limited'], { seconds })
      reject({ status: 429, values: form.entered, faults: {}, message, headers })
      return
    }
    const outcome = await reportFromForm({ ...deps, insert, strings }, req, form)
    if (typeof outcome !== 'string') {
      reject(outcome)
      return
    }
    const body = renderReportedPage(outcome, strings)
    sendPage(res, { status: 201, body, cacheControl: 'no-store' })
  }
}

interface ReportDeps extends AbuseRouteDeps {
  readonly insert: InsertReport
  readonly strings: Strings
}

/** The id of the stored report, or why none was stored. */
async function reportFromForm(
  { insert, strings, nowMs, metrics }: ReportDeps,
  { headers }: Request,
  { entered: values, parsed }: ParsedAbuseForm,
): Promise<string | Rejection> {
  const { messages } = strings.abuse
  if (!('report' in parsed)) return { status: 422, values, ...parsed }
  // Browsers set this header, and no site can change it. Without this check, a site could send
  // reports in the name of its visitors. The response contains the form as entered: the visitor
  // can submit it.
  if (headers['sec-fetch-site'] === 'cross-site') {
    return { status: 403, values, faults: {}, message: messages.anotherSite }
  }
  const atMs = nowMs()
  const id = newReportId(atMs)
  const outcome = await resultOrOutcome(insert({ id, ...parsed.report }))
  if (outcome === 'stored') {
    metrics.reports.inc({ reason: parsed.report.reason })
    return id
  }
  const message = fill(messages[outcome], { max: String(REPORTS_PER_DAY_MAX) })
  const seconds = outcome === 'full' ? secondsToNextDay(atMs) : 1
  return { status: 503, values, faults: {}, message, headers: { 'Retry-After': String(seconds) } }
}

function secondsToNextDay(ms: number): number {
  return Math.ceil((dayOf(ms) + 1) * DAY_SECONDS - ms / 1000)
}

function sendRejection(
  res: Response,
  { status, headers = {}, ...view }: Rejection,
  strings: Strings,
): void {
  const body = renderAbusePage({ ...view, strings })
  sendPage(res, { status, body, cacheControl: 'no-store', headers })
}
