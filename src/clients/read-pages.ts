// Reads the pages of all links from the admin API, at a bounded rate. Each retry of a page reads
// half as many links, so that a slow store can respond.
import * as z from 'zod'
import { monotonicMs, pause as defaultPause } from '../resilience/deadline.ts'
import { type AdminTarget, callAdminApi } from './admin-client.ts'
import { linkShape } from './link-shape.ts'
import { createRetry, type RetryOptions } from './retry-unavailable.ts'
import { untilAborted } from './until-aborted.ts'

/** The format of a page. */
export const pageShape = z.object({ links: z.array(linkShape), next: z.string().nullable() })

type Page = z.output<typeof pageShape>

const PAGE_LINKS_MAX = 500
/** Longer than the service's deadline of a page, 12 s (stores/cassandra/statement-kinds.ts). */
export const PAGE_MS_MAX = 20_000
/** At a low rate, pages are small, so that the load is even. */
const PAGES_PER_SECOND = 10

/** How to read the pages. */
export interface PageOptions extends RetryOptions {
  readonly target: AdminTarget
  /** The code after which the first page starts. */
  readonly after: string | undefined
  readonly linksPerSecond: number
  /** The maximum number of links of a page. @default 500 */
  readonly pageLinksMax?: number
}

/** Yields each page when the previous one is consumed. Throws OperatorError. */
export async function* readPages(options: PageOptions): AsyncGenerator<Page, void, undefined> {
  const { linksPerSecond, signal, pause = defaultPause } = options
  const readPage = createPageReader(options)
  let { after } = options
  for (;;) {
    const startedMs = monotonicMs()
    const page = await untilAborted(signal, readPage(after))
    yield page
    if (page.next === null) return
    after = page.next
    const tookMs = monotonicMs() - startedMs
    await pause(Math.max(0, (page.links.length / linksPerSecond) * 1000 - tookMs), signal)
  }
}

function createPageReader(options: PageOptions) {
  const { target, linksPerSecond, pageLinksMax = PAGE_LINKS_MAX } = options
  const linksMax = Math.min(pageLinksMax, Math.ceil(linksPerSecond / PAGES_PER_SECOND))
  let limit = linksMax
  const retry = createRetry({
    ...options,
    onRetry(cause) {
      options.onRetry(cause)
      limit = Math.max(1, Math.floor(limit / 2))
    },
  })
  return async (after: string | undefined): Promise<Page> => {
    const page = await retry(() => {
      const query = new URLSearchParams({
        ...(after !== undefined && { after }),
        limit: `${limit}`,
      })
      const path = `/admin/links?${String(query)}`
      const request = { method: 'GET', path, msMax: PAGE_MS_MAX }
      return callAdminApi(target, request, pageShape)
    })
    limit = Math.min(linksMax, limit * 2)
    return page
  }
}
