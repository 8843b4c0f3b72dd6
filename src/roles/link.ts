// `curtail link`: operations on one link, or on many links, through the admin API.
import { createReadStream } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import { parseArgs } from 'node:util'
import * as z from 'zod'
import {
  type AdminTarget,
  callAdminApiOnce,
  type UnavailableError,
} from '../clients/admin-client.ts'
import type { ChangeCounts } from '../clients/change-link.ts'
import { changeCodes, changeMatching } from '../clients/change-links.ts'
import { readCodeList } from '../clients/code-list.ts'
import { findLinks } from '../clients/find-links.ts'
import {
  type BulkArguments,
  type BulkVerb,
  hasBulkOption,
  isBulkVerb,
  parseBulkArgs,
  type Selection,
} from '../clients/link-arguments.ts'
import { linkShape } from '../clients/link-shape.ts'
import type { ListedLink } from '../clients/scan-links.ts'
import { STOPPED } from '../clients/until-aborted.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { operatorSetting } from '../http/admin/operator-setting.ts'
import { CODE_LENGTH_MAX, isCode } from '../links/alias.ts'
import { parseHost } from '../links/target-url.ts'
import { createProgressLine } from '../process/progress-line.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'
import { messageOf } from '../resilience/message-of.ts'

const requests = {
  show: { method: 'GET', suffix: '' },
  disable: { method: 'POST', suffix: '/disable' },
  enable: { method: 'POST', suffix: '/enable' },
  delete: { method: 'DELETE', suffix: '' },
} as const

type Verb = keyof typeof requests

const STDIN = '-'
/** During an outage, each of the parallel requests is retried: this bounds their messages. */
const WARN_EVERY_MS = 1000

/** `link show|disable|enable|delete CODE`, `link list` and changes of many links. */
export const role = defineRole({
  usage:
    'link show|disable|enable|delete CODE [--json]\n' +
    '       curtail link list [--creator=ID] [--target-host=HOST] [--state=STATE]\n' +
    '                         [--json] [--rate=LINKS_PER_SECOND] [--after=CODE]\n' +
    '       curtail link disable --creator=ID|--target-host=HOST [--after=CODE] [OPTIONS]\n' +
    '       curtail link disable|enable --from-file=FILE|- [--after-line=LINE] [OPTIONS]\n' +
    '       OPTIONS: [--dry-run] [--json] [--rate=LINKS_PER_SECOND]',
  about:
    'Shows, disables, enables or deletes one link. At most 5 seconds after it is disabled or\n' +
    'deleted, all pods have stopped redirecting it, unless the store is unavailable. enable\n' +
    'reverts disable. A deleted link cannot be restored, and its code is never reused.\n' +
    'A CODE that starts with - requires -- before it, as in: curtail link show -- -ab\n\n' +
    'list prints the links that all its filters select. --target-host selects the targets on\n' +
    'HOST and its subdomains. Changes of many links skip links that are expired or deleted.\n' +
    'FILE has one code, or one line of the output of --json, per line. --dry-run changes\n' +
    'nothing. --json prints each link that is found or changed as one line of JSON. --rate is\n' +
    'the maximum number of links read by list, 5000 by default, of links changed, or of codes\n' +
    'of FILE handled, 200 by default, per second. If a command fails, its error has the option\n' +
    'that continues it.',
  settings: { ...clientSettings, OPERATOR: operatorSetting },
  run: async ({ config, args, signal }) => {
    const { ADMIN_URL: url, ADMIN_TOKEN: token, OPERATOR: operator } = config
    const target = { url, token, operator }
    const [verb] = args
    if (isBulkVerb(verb) && (verb === 'list' || hasBulkOption(args))) {
      await runBulk(verb, parseBulkArgs(args, { isCode, parseHost }), { target, signal })
    } else process.stdout.write(await runVerb(target, parseLinkArgs(args)))
    return { exitCode: 0 }
  },
})

function parseLinkArgs(args: readonly string[]): { verb: Verb; code: string; json: boolean } {
  const verbs = [...Object.keys(requests), 'list'].join(', ')
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { json: { type: 'boolean', default: false } },
    allowPositionals: true,
    strict: false,
  })
  const unknown = Object.keys(values).find((name) => name !== 'json')
  if (unknown !== undefined) {
    const option = `${unknown.length === 1 ? '-' : '--'}${unknown}`
    const hint = 'a CODE that starts with - requires -- before it'
    throw new UsageError(`link takes only --json, not ${option}; ${hint}`)
  }
  const [verb = '', code = '', ...rest] = positionals
  if (!isVerb(verb))
    throw new UsageError(`link requires one of ${verbs}: it is ${JSON.stringify(verb)}`)
  if (code === '' || rest.length > 0) {
    const many = isBulkVerb(verb) ? '; --help lists the options for many links' : ''
    const given = `${positionals.length - 1} are given`
    throw new UsageError(`link ${verb} requires one CODE: ${given}${many}`)
  }
  if (!isCode(code)) {
    const allowed = `1 to ${CODE_LENGTH_MAX} letters, digits, - and _`
    throw new UsageError(`CODE must consist of ${allowed}: it is ${JSON.stringify(code)}`)
  }
  return { verb, code, json: values.json === true }
}

function isVerb(name: string): name is Verb {
  return Object.hasOwn(requests, name)
}

async function runVerb(
  target: AdminTarget,
  { verb, code, json }: { verb: Verb; code: string; json: boolean },
): Promise<string> {
  const { method, suffix } = requests[verb]
  const request = { method, path: `/admin/links/${code}${suffix}` }
  if (verb === 'delete') {
    await callAdminApiOnce(target, request, z.undefined())
    return json
      ? `${JSON.stringify({ short_code: code, state: 'deleted' })}\n`
      : `${code} deleted\n`
  }
  const link = await callAdminApiOnce(target, request, linkShape)
  if (json) return `${JSON.stringify(link)}\n`
  return renderTable(
    ['CODE', 'STATE', 'CREATED', 'EXPIRES', 'TARGET'],
    [
      [
        link.short_code,
        link.state,
        link.created_at,
        link.expires_at ?? 'never',
        link.long_url ?? '-',
      ],
    ],
  )
}

interface BulkRun {
  readonly target: AdminTarget
  readonly signal: AbortSignal
}

async function runBulk(verb: BulkVerb, args: BulkArguments, run: BulkRun): Promise<void> {
  const { stdout, stderr } = process
  const hasRows = verb === 'list' || args.isJson
  // On one terminal, the line would interrupt the rows.
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

async function runList(args: BulkArguments, common: CommonOptions): Promise<void> {
  const { selection, after, isJson } = args
  const render = isJson ? (link: ListedLink) => `${JSON.stringify(link)}\n` : renderRow
  if (!isJson) process.stdout.write(renderCells(columns.map(([heading]) => heading)))
  const found = await findLinks({
    ...common,
    name: 'link list',
    after,
    matches: matcherOf(selection),
    render,
    output: process.stdout,
    onPage: common.onProgress,
  })
  const { scanned, matched, lastCreatedAt = '-' } = found
  common.print(`scanned ${scanned}, matched ${matched}, last created ${lastCreatedAt}`)
}

async function runChange(
  verb: 'disable' | 'enable',
  args: BulkArguments,
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
      await changeMatching(options, { matches: matcherOf(selection), after })
    } else {
      const codes = await readCodeList(charactersOf(file, common.signal), {
        name: nameOf(file),
        isCode,
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

/** Whether a link is what the filters select; its host is compared as the URL parser reads it. */
function matcherOf({ creator, host, state }: Selection): (link: ListedLink) => boolean {
  return (link) =>
    (creator === undefined || link.creator_id === creator) &&
    (state === undefined || link.state === state) &&
    (host === undefined || isOnHost(link.long_url, host))
}

function isOnHost(longUrl: string | null, host: string): boolean {
  const target = parseHost(URL.parse(longUrl ?? '')?.host ?? '')
  return target === host || target?.endsWith(`.${host}`) === true
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
const columns = [
  ['CODE', CODE_LENGTH_MAX],
  ['STATE', 8],
  ['CREATED', 24],
  ['EXPIRES', 24],
  ['CREATOR', 10],
  ['TARGET', 0],
] as const

function renderCells(cells: readonly string[]): string {
  const padded = cells.map((cell, i) => cell.padEnd(columns[i]?.[1] ?? 0))
  return `${padded.join('  ').trimEnd()}\n`
}

function renderRow(link: ListedLink): string {
  return renderCells([
    link.short_code,
    link.state,
    link.created_at,
    link.expires_at ?? 'never',
    link.creator_id ?? '-',
    link.long_url ?? '-',
  ])
}
