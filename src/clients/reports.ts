// Reads reports of abuse from the admin API, and the links that they are about.
import * as z from 'zod'
import { type AdminTarget, callAdminApiOnce, ProblemError } from './admin-client.ts'
import { linkShape } from './link-shape.ts'
import { PAGE_MS_MAX } from './read-pages.ts'
import { untilAborted } from './until-aborted.ts'

/** A report in the format of the admin API. Further members, of a newer process, are kept. */
export const reportShape = z.looseObject({
  id: z.string(),
  received_at: z.string(),
  short_code: z.string(),
  reason: z.string(),
  details: z.string().nullable(),
  contact: z.string().nullable(),
})

/** A report in the format of the admin API. */
export type ListedReport = z.output<typeof reportShape>

/** The link of a report, as it is now; `null` if no link has the code. */
export type ReportedLink = z.output<typeof linkShape> | null

const pageShape = z.object({ reports: z.array(reportShape), next: z.string().nullable() })
const PAGE_MAX = 100
/** Links that are read at the same time. */
const PARALLEL_MAX = 8
const NOT_FOUND = 404

/** How to reach the API, and what stops the command. */
export interface ReportReader {
  readonly target: AdminTarget
  readonly signal: AbortSignal
}

/** Which reports to read. */
export interface ReportSelection {
  readonly matches: (report: ListedReport) => boolean
  readonly sinceMs: number | undefined
  /** The maximum number of matches. */
  readonly limit: number
}

/** The matches in one page. */
export interface FoundReports {
  readonly reports: readonly ListedReport[]
  /** There are more matches than the limit: this page is the last one. */
  readonly hasMore: boolean
}

/** Yields the matches of each page, newest first; perhaps none. Throws OperatorError. */
export async function* findReports(
  { target, signal }: ReportReader,
  { matches, sinceMs, limit }: ReportSelection,
): AsyncGenerator<FoundReports, void, undefined> {
  const since = sinceMs === undefined ? {} : { since: new Date(sinceMs).toISOString() }
  let left = limit
  let before: string | null = null
  do {
    const query = new URLSearchParams({
      ...since,
      ...(before !== null && { before }),
      limit: `${PAGE_MAX}`,
    })
    const path = `/admin/reports?${String(query)}`
    const call = callAdminApiOnce(target, { method: 'GET', path, msMax: PAGE_MS_MAX }, pageShape)
    const page: z.output<typeof pageShape> = await untilAborted(signal, call)
    const found = page.reports.filter(matches)
    yield { reports: found.slice(0, left), hasMore: found.length > left }
    left -= found.length
    before = page.next
  } while (before !== null && left >= 0)
}

/** Reads the links of codes, each once. Throws OperatorError. */
export async function readLinks(
  { target, signal }: ReportReader,
  codes: Iterable<string>,
): Promise<ReadonlyMap<string, ReportedLink>> {
  const links = new Map<string, ReportedLink>()
  const pending = new Set(codes).values()
  const readNext = async () => {
    for (const code of pending) {
      if (signal.aborted) return
      links.set(code, await readLink(target, code))
    }
  }
  const readers = Array.from({ length: PARALLEL_MAX }, readNext)
  await untilAborted(signal, Promise.all(readers))
  return links
}

async function readLink(target: AdminTarget, code: string): Promise<ReportedLink> {
  const request = { method: 'GET', path: `/admin/links/${code}` }
  try {
    return await callAdminApiOnce(target, request, linkShape)
  } catch (error) {
    if (error instanceof ProblemError && error.status === NOT_FOUND) return null
    throw error
  }
}
