// Lists or changes many links, for the commands of the role `link`: reads the selection, and prints
// the links and the counts.
import { createReadStream } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import { renderJsonLines } from '../process/json-lines.ts'
import { createProgressLine } from '../process/progress-line.ts'
import { OperatorError } from '../process/role.ts'
import { messageOf } from '../resilience/message-of.ts'
import type { AdminTarget, UnavailableError } from './admin-client.ts'
import type { ChangeCounts } from './change-link.ts'
import { changeCodes, changeMatching } from './change-links.ts'
import { readCodeList } from './code-list.ts'
import { findLinks } from './find-links.ts'
import type { BulkRequest, Selection, Syntax } from './link-arguments.ts'
import { shownState } from './link-shape.ts'
import type { ListedLink } from './scan-links.ts'
import { STOPPED } from './until-aborted.ts'

const STDIN = '-'
/** Bounds the warnings in an outage, when each of the parallel requests is retried. */
const WARN_EVERY_MS = 1000

/** How to run a command for many links. */
export interface BulkRun {
  readonly target: AdminTarget
  readonly signal: AbortSignal
  readonly syntax: Syntax
  readonly codeLengthMax: number
}

/** Lists or changes the selected links; prints the links and the counts. Throws OperatorError. */
export async function runBulk(args: BulkRequest, run: BulkRun): Promise<void> {
  const { verb } = args
  const { stdout, stderr } = process
  const hasRows = verb === 'list' || args.isJson
  // If both are on one terminal, the progress line would interrupt the rows.
  const isShown = stderr.isTTY && !(hasRows && stdout.isTTY)
  const progress = createProgressLine(stderr, { items: 'links scanned', isShown })
  let warnedMs = -Infinity
  const onRetry = ({ message }: UnavailableError) => {
    if (performance.now() - warnedMs < WARN_EVERY_MS) return
    warnedMs = performance.now()
    progress.warn(`curtail: ${message}; retrying`)
  }
  const print = (summary: string) => {
    progress.complete()
    ;(args.isJson ? stderr : stdout).write(`${summary}\n`)
  }
  const common = { ...run, linksPerSecond: args.rate, onRetry, onProgress: progress.update, print }
  try {
    if (verb === 'list') await runList(args, common)
    else await runChange(verb, args, common)
  } finally {
    progress.complete()
  }
}

interface CommonOptions extends BulkRun {
  readonly linksPerSecond: number
  readonly onRetry: (cause: UnavailableError) => void
  readonly onProgress: (scanned: number) => void
  readonly print: (summary: string) => void
}

async function runList(args: BulkRequest, common: CommonOptions): Promise<void> {
  const { selection, after, isJson } = args
  const columns = columnsFor(common.codeLengthMax)
  const headings = columns.map(([heading]) => heading)
  const renderCells = (cells: readonly string[]) => {
    const padded = cells.map((cell, i) => cell.padEnd(columns[i]?.[1] ?? 0))
    return `${padded.join('  ').trimEnd()}\n`
  }
  const render = (link: ListedLink) =>
    isJson ? renderJsonLines([link]) : renderCells(cellsOf(link))
  if (!isJson) process.stdout.write(renderCells(headings))
  const isSelected = matcherOf(selection, common.syntax)
  const isInAnyState = matcherOf({ ...selection, state: undefined }, common.syntax)
  let uncheckedLinks = 0
  const found = await findLinks({
    ...common,
    name: 'link list',
    after,
    matches: (link) => {
      const isUnchecked = link.state === 'active' && link.target_blocked === undefined
      if (isUnchecked && isInAnyState(link)) uncheckedLinks++
      return isSelected(link)
    },
    render,
    output: process.stdout,
    onPage: common.onProgress,
  })
  const { scanned, matched, lastCreatedAt } = found
  const newest = lastCreatedAt === undefined ? '' : `, newest match created at ${lastCreatedAt}`
  common.print(`scanned ${scanned}, matched ${matched}${newest}`)
  if (selection.state === 'blocked' && uncheckedLinks > 0) {
    const cause =
      `the service at ${common.target.url} has loaded no blocked targets, ` +
      'or is version 0.1.0, which does not report them'
    process.stderr.write(`curtail: ${uncheckedLinks} active links are not checked: ${cause}\n`)
  }
}

async function runChange(
  verb: 'disable' | 'enable',
  args: BulkRequest,
  common: CommonOptions,
): Promise<void> {
  const { selection, after, afterLine, file, isDryRun, isJson } = args
  const counts = { scanned: 0, changed: 0, already: 0, skipped: 0, notFound: 0, failed: 0 }
  const output = isJson ? process.stdout : undefined
  const onProgress = () => {
    common.onProgress(counts.scanned)
  }
  const options = { ...common, verb, isDryRun, output, counts, onProgress }
  try {
    if (file === undefined) {
      await changeMatching(options, { matches: matcherOf(selection, common.syntax), after })
    } else {
      const codes = await readCodeList(charactersOf(file, common.signal), {
        name: nameOf(file),
        isCode: common.syntax.isCode,
      })
      await changeCodes(
        options,
        codes.filter(({ line }) => line > afterLine),
      )
    }
  } catch (error) {
    const isStarted = Object.values(counts).some((count) => count > 0)
    if (isStarted) common.print(summaryOf(verb, counts, isDryRun))
    throw error
  }
  common.print(summaryOf(verb, counts, isDryRun))
}

function summaryOf(verb: 'disable' | 'enable', counts: ChangeCounts, isDryRun: boolean): string {
  const { scanned, changed, already, skipped, notFound, failed } = counts
  const [would, was] = [`would ${verb}`, `${verb}d`]
  const state = verb === 'enable' ? 'active' : 'disabled'
  return (
    `${isDryRun ? would : was} ${changed}, already ${state} ${already}, ` +
    `expired or deleted ${skipped}, not found ${notFound}, ` +
    `${failed > 0 ? `failed ${failed}, ` : ''}scanned ${scanned}`
  )
}

/** Creates the check whether the filters select a link: a host also selects its subdomains. */
function matcherOf(
  { creator, host, state }: Selection,
  { parseHost }: Syntax,
): (link: ListedLink) => boolean {
  const isOnHost = (longUrl: string | null, wanted: string) => {
    const target = parseHost(URL.parse(longUrl ?? '')?.host ?? '')
    return target === wanted || target?.endsWith(`.${wanted}`) === true
  }
  return (link) =>
    (creator === undefined || link.creator_id === creator) &&
    (state === undefined || shownState(link) === state) &&
    (host === undefined || isOnHost(link.long_url, host))
}

const nameOf = (file: string) => (file === STDIN ? 'the standard input' : file)

async function* charactersOf(
  file: string,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const stream = file === STDIN ? process.stdin : createReadStream(file)
  try {
    const characters = addAbortSignal(signal, stream.setEncoding('utf8'))
    for await (const some of characters) yield some as string
  } catch (error) {
    const cause = signal.aborted ? STOPPED : messageOf(error)
    throw new OperatorError(`cannot read ${nameOf(file)} (${cause})`)
  }
}

/** The columns of the table: widths are fixed, because rows are printed page by page. */
const columnsFor = (codeLengthMax: number) =>
  [
    ['CODE', codeLengthMax],
    ['STATE', 8],
    ['CREATED', 24],
    ['EXPIRES', 24],
    ['CREATOR', 10],
    ['TARGET', 0],
  ] as const

function cellsOf(link: ListedLink): readonly string[] {
  return [
    link.short_code,
    shownState(link),
    link.created_at,
    link.expires_at ?? 'never',
    link.creator_id ?? '-',
    link.long_url ?? '-',
  ]
}
