// Exports all links through the admin API: page by page, at a bounded rate, as fast as the output
// accepts them. One page is in memory until it is written. The error of a failed export contains
// the code after which another one continues it.
import type { Writable } from 'node:stream'
import * as z from 'zod'
import { OperatorError } from '../process/role.ts'
import { monotonicMs, pause as defaultPause, type Pause } from '../resilience/deadline.ts'
import { createBackOff, fromHalf } from '../resilience/retry-until-deadline.ts'
import { type AdminTarget, callAdminApi, UnavailableError } from './admin-client.ts'
import { linkShape } from './link-shape.ts'

const pageShape = z.object({ links: z.array(linkShape), next: z.string().nullable() })

const PAGE_LINKS_MAX = 500
/** At a low rate, pages are small, so that the load is even. */
const PAGES_PER_SECOND = 10
/** Attempts of one page; the pauses between them are 20 to 40 s in total. */
const ATTEMPTS_MAX = 10
const PAUSES = { firstMs: 250, maxMs: 8000 }

/** How to export. */
export interface ExportOptions {
  readonly target: AdminTarget
  readonly output: Writable
  /** The last exported code of an earlier export. */
  readonly after: string | undefined
  readonly linksPerSecond: number
  /** Stops the export. */
  readonly signal: AbortSignal
  /** Called after each page with the number of links exported so far. */
  readonly onPage: (links: number) => void
  /** Called before a page is retried. */
  readonly onRetry: (cause: UnavailableError) => void
  /** Waits before the next page or a retry; replaced in tests. */
  readonly pause?: Pause
}

/** Exports all links, one JSON object per line; resolves to their number. Throws OperatorError. */
export async function exportLinks(options: ExportOptions): Promise<number> {
  const { output, linksPerSecond, signal, onPage, pause = defaultPause } = options
  const readPage = createPageReader(options)
  let exported = 0
  let { after } = options
  try {
    for (;;) {
      const startedMs = monotonicMs()
      const { links, next } = await untilAborted(signal, readPage(after))
      await write(output, links.map((link) => `${JSON.stringify(link)}\n`).join(''), signal)
      exported += links.length
      onPage(exported)
      if (next === null) return exported
      after = next
      const tookMs = monotonicMs() - startedMs
      await pause(Math.max(0, (links.length / linksPerSecond) * 1000 - tookMs), signal)
    }
  } catch (error) {
    const isOutput = error instanceof OutputError
    if (!(error instanceof OperatorError) || (exported === 0 && !isOutput)) throw error
    const from = isOutput ? LAST_LINE : after
    throw new OperatorError(
      `export stopped after ${exported} links: ${error.message}; continue with --after=${from}`,
    )
  }
}

const LAST_LINE = 'CODE, the short_code of the last complete line'

/** The output failed, or the export was stopped during a write: a line may be incomplete. */
class OutputError extends OperatorError {}

/** Creates the function that reads a page, with retries, each of which reads half as many links. */
function createPageReader(options: ExportOptions) {
  const { target, linksPerSecond, signal, onRetry, pause = defaultPause } = options
  const linksMax = Math.min(PAGE_LINKS_MAX, Math.ceil(linksPerSecond / PAGES_PER_SECOND))
  let limit = linksMax
  let isReached = false
  return async (after: string | undefined): Promise<z.output<typeof pageShape>> => {
    const backOff = createBackOff({ signal, pause, pauses: PAUSES, random: fromHalf })
    for (let attempt = 1; ; attempt++) {
      const query = new URLSearchParams({
        ...(after !== undefined && { after }),
        limit: `${limit}`,
      })
      const request = { method: 'GET', path: `/admin/links?${String(query)}` }
      try {
        const page = await callAdminApi(target, request, pageShape)
        isReached = true
        limit = Math.min(linksMax, limit * 2)
        return page
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error
        isReached ||= error.status !== undefined
        if (!isReached || attempt === ATTEMPTS_MAX || signal.aborted) throw error
        onRetry(error)
        limit = Math.max(1, Math.floor(limit / 2))
        await backOff()
      }
    }
  }
}

/** Resolves once the reader of the output has accepted all of `lines`. */
async function write(output: Writable, lines: string, signal: AbortSignal): Promise<void> {
  const written = new Promise<void>((resolve, reject) => {
    output.write(lines, (error) => {
      if (error) reject(new OperatorError(`cannot write the output (${error.message})`))
      else resolve()
    })
  })
  try {
    await untilAborted(signal, written)
  } catch (error) {
    throw new OutputError((error as Error).message)
  }
}

/** The result of `call`; rejects as soon as `signal` aborts. */
function untilAborted<T>(signal: AbortSignal, call: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(new OperatorError('a signal was received'))
    }
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    void call.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', abort)
    })
  })
}
