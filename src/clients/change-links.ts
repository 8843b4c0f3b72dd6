// Disables or enables many links through the admin API, some in parallel, at a bounded rate. The
// links are the matches of a scan, or those of a list of codes. The error of a run that stops names
// the option that continues it, and the changes that are not confirmed.
import { OperatorError } from '../process/role.ts'
import { callAdminApi, ProblemError, UnavailableError } from './admin-client.ts'
import { type ChangeOptions, createChanger } from './change-link.ts'
import type { ListedCode } from './code-list.ts'
import { pageShape, readPages } from './read-pages.ts'
import { createRetry } from './retry-unavailable.ts'
import { runInOrder } from './run-in-order.ts'
import type { ListedLink } from './scan-links.ts'
import { untilAborted } from './until-aborted.ts'

/** The links that a scan reads per second. */
const SCANNED_PER_SECOND = 5000
/** Small pages: a link is changed soon after it is read, before another operator changes it. */
const PAGE_LINKS = { min: 10, max: 500 }
/** How long a change may be in flight: the service waits for a second before it confirms. */
const SECONDS_IN_FLIGHT = 1.5
const PARALLEL = { min: 8, max: 256 }
/** After this many consecutive codes whose attempts all failed, the API counts as unavailable. */
const FAILED_IN_ROW_MAX = 8
/** Maximum number of codes in an error. */
const SHOWN_MAX = 50

const clamp = (value: number, { min, max }: { readonly min: number; readonly max: number }) =>
  Math.min(max, Math.max(min, Math.ceil(value)))
const parallelMaxAt = (linksPerSecond: number) =>
  clamp(SECONDS_IN_FLIGHT * linksPerSecond, PARALLEL)

/** Changes the matching links that a scan returns after `after`. Throws OperatorError. */
export async function changeMatching(
  options: ChangeOptions,
  given: { matches: (link: ListedLink) => boolean; after: string | undefined },
): Promise<void> {
  const { verb, linksPerSecond, isDryRun, counts, signal, onProgress } = options
  const { matches } = given
  let { after } = given
  const changer = createChanger(options)
  const run = async (link: ListedLink) => {
    if (matches(link)) await changer.change(link)
  }
  const onDone = (links: number, last: ListedLink) => {
    counts.scanned = links
    after = last.short_code
    onProgress()
  }
  const items = scannedLinks({
    ...{ ...options, after, linksPerSecond: SCANNED_PER_SECOND },
    ...(!isDryRun && { pageLinksMax: clamp(linksPerSecond, PAGE_LINKS) }),
  })
  try {
    await runInOrder({ items, parallelMax: parallelMaxAt(linksPerSecond), run, onDone, signal })
  } catch (error) {
    const unconfirmed = changer.unconfirmed()
    const isStarted = counts.scanned + counts.changed + unconfirmed.length > 0
    if (!(error instanceof OperatorError) || !isStarted) throw error
    const where =
      after === undefined ? 'restart from the first link' : `continue with --after=${after}`
    const hint =
      unconfirmed.length === 0
        ? ''
        : `not confirmed: ${shown(unconfirmed)} (run link ${verb} for each); `
    throw new OperatorError(
      `link ${verb} stopped after ${counts.scanned} links: ${error.message}; ${hint}${where}`,
    )
  }
}

async function* scannedLinks(
  options: Parameters<typeof readPages>[0],
): AsyncGenerator<ListedLink, void, undefined> {
  for await (const { links } of readPages(options)) yield* links
}

/**
 * Changes the links with these codes. If all attempts for a code fail, the other links are changed
 * nevertheless, and the error contains the code. Throws OperatorError.
 */
export async function changeCodes(
  options: ChangeOptions,
  codes: readonly ListedCode[],
): Promise<void> {
  const { verb, linksPerSecond, counts, signal, onProgress } = options
  await checkApi(options)
  const changer = createChanger(options)
  const failures = createFailures(options)
  const run = (code: ListedCode) => failures.collect(code, changer.changeCode(code))
  let line: number | undefined
  const onDone = (items: number, last: ListedCode) => {
    counts.scanned = items
    line = last.line
    onProgress()
  }
  const parallelMax = parallelMaxAt(linksPerSecond)
  try {
    await runInOrder({ items: codes, parallelMax, run, onDone, signal })
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    if (Object.values(counts).every((count) => count === 0)) throw error
    const failed = failures.count() === 0 ? '' : `failed: ${failures.show()}; `
    const [stopped, where] =
      line === undefined
        ? ['stopped', 'restart it with the same options']
        : [`stopped after line ${line}`, `continue with --after-line=${line}`]
    throw new OperatorError(`link ${verb} ${stopped}: ${error.message}; ${failed}${where}`)
  }
  if (failures.count() === 0) return
  throw new OperatorError(
    `link ${verb} failed for ${failures.count()} codes: ${failures.show()}: ${failures.cause()}; ` +
      'retry the command',
  )
}

/** Throws OperatorError if the server has no admin API: it would return 404 for every code. */
async function checkApi(options: ChangeOptions): Promise<void> {
  const { target, signal } = options
  // The API rejects this page without a read of the store.
  const request = { method: 'GET', path: '/admin/links?limit=0' }
  try {
    const retry = createRetry(options)
    await untilAborted(
      signal,
      retry(() => callAdminApi(target, request, pageShape)),
    )
  } catch (error) {
    if (!(error instanceof ProblemError && error.status === 422)) throw error
  }
}

/** Collects the codes of a list whose attempts all failed; throws if too many fail in a row. */
function createFailures({ counts, signal }: ChangeOptions) {
  const failed: ListedCode[] = []
  let inRow = 0
  let lastCause = ''
  return {
    async collect(code: ListedCode, change: Promise<void>) {
      try {
        await change
        inRow = 0
      } catch (error) {
        if (!(error instanceof UnavailableError) || signal.aborted) throw error
        if (++inRow >= FAILED_IN_ROW_MAX) throw error
        failed.push(code)
        counts.failed++
        lastCause = error.message
      }
    },
    count: () => failed.length,
    show() {
      failed.sort((a, b) => a.line - b.line)
      return shown(failed.map(({ code, line }) => `${code} (line ${line})`))
    },
    cause: () => lastCause,
  }
}

/** The first of `items`, and the number of the others. */
function shown(items: readonly string[]): string {
  const more = items.length - SHOWN_MAX
  return items.slice(0, SHOWN_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
