// `curtail report`: reports of abuse, and the links that they are about, through the admin API.
import { callAdminApiOnce } from '../clients/admin-client.ts'
import {
  findReports,
  type ListedReport,
  readLinks,
  type ReportedLink,
  type ReportReader,
  reportShape,
} from '../clients/reports.ts'
import { shownState } from '../clients/link-shape.ts'
import { untilAborted } from '../clients/until-aborted.ts'
import { parseDuration } from '../config/duration-setting.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { CODE_LENGTH_MAX, isCode } from '../links/alias.ts'
import { isReportId, reportReasons } from '../links/report.ts'
import { jsonFlag, type Parsed } from '../process/command-line.ts'
import { escapeInvisible } from '../process/escape-invisible.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { defineRole, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'

const LIMIT_DEFAULT = 50
const LIMIT_MAX = 10_000
const DAY_MS = 86_400_000

const commands = {
  list: {
    about: 'prints the reports that all its options select, newest first',
    flags: {
      code: { about: 'reports of this code', value: 'CODE' },
      reason: { about: 'reports with this reason', value: 'REASON', values: reportReasons },
      since: { about: 'reports of the last DURATION, such as 24h or 7d', value: 'DURATION' },
      limit: { about: `maximum number of reports, by default ${LIMIT_DEFAULT}`, value: 'N' },
      codes: { about: 'prints only the codes, each once' },
      ...jsonFlag,
    },
  },
  show: { about: 'shows one report completely', operands: ['ID'], flags: jsonFlag },
} as const

type Arguments = Parsed<typeof commands>
type ListFlags = Extract<Arguments, { command: 'list' }>['flags']

/** `report list|show`. */
export const role = defineRole({
  name: 'report',
  about:
    'list prints each report with the state and the target that the link has now. The output of\n' +
    '--codes is the input of `curtail link disable --from-file=-`. Reports expire after 90 days.',
  commands,
  settings: clientSettings,
  check: parseReportArgs,
  run: async ({ config, args, signal }) => {
    const reader = { target: { url: config.ADMIN_URL, token: config.ADMIN_TOKEN }, signal }
    const parsed = parseReportArgs(args)
    if ('id' in parsed) process.stdout.write(await show(reader, parsed))
    else await list(reader, parsed)
    return { exitCode: 0 }
  },
})

interface ShowArguments {
  readonly id: string
  readonly isJson: boolean
}

interface ListArguments {
  readonly code: string | undefined
  readonly reason: string | undefined
  readonly sinceMs: number | undefined
  readonly limit: number
  readonly output: 'table' | 'json' | 'codes'
}

/** Throws UsageError. */
function parseReportArgs({ command, operands, flags }: Arguments): ShowArguments | ListArguments {
  if (command === 'list') return parseList(flags)
  const [id = ''] = operands
  if (isReportId(id)) return { id, isJson: flags.json }
  throw new UsageError(`ID must be one that report list prints: it is ${JSON.stringify(id)}`)
}

function parseList({ code, reason, since, limit, json, codes }: ListFlags): ListArguments {
  if (code !== undefined && !isCode(code)) {
    throw invalid('code', `1 to ${CODE_LENGTH_MAX} letters, digits, - and _`, code)
  }
  if (json && codes) throw new UsageError('report list takes either --json or --codes')
  const output = json ? 'json' : codes ? 'codes' : 'table'
  return { code, reason, sinceMs: parseSince(since), limit: parseLimit(limit), output }
}

function invalid(option: string, allowed: string, value: string): UsageError {
  return new UsageError(`--${option} must be ${allowed}: it is ${JSON.stringify(value)}`)
}

function parseLimit(limit = String(LIMIT_DEFAULT)): number {
  const max = /^\d{1,9}$/.test(limit) ? Number(limit) : 0
  if (max >= 1 && max <= LIMIT_MAX) return max
  throw invalid('limit', `an integer from 1 to ${LIMIT_MAX}`, limit)
}

/** The time that is `since` ago: a duration in Go's syntax, or in days. */
function parseSince(since: string | undefined): number | undefined {
  if (since === undefined) return undefined
  const [, days] = /^(\d{1,5})d$/.exec(since) ?? []
  const ms = days === undefined ? parseDuration(since) : Number(days) * DAY_MS
  if (ms !== undefined && ms > 0 && Number.isFinite(ms)) return Math.max(0, Date.now() - ms)
  throw invalid('since', 'a positive duration such as 24h or 7d', since)
}

/** Prints the matches of each page as soon as it has arrived. */
async function list(reader: ReportReader, args: ListArguments): Promise<void> {
  const { code, reason, sinceMs, limit, output } = args
  const matches = (report: ListedReport) =>
    (code === undefined || report.short_code === code) &&
    (reason === undefined || report.reason === reason)
  const printed = new Set<string>()
  if (output === 'table') process.stdout.write(renderLines([HEADINGS]))
  for await (const { reports, hasMore } of findReports(reader, { matches, sinceMs, limit })) {
    const codes = new Set(reports.map((report) => report.short_code))
    if (output === 'codes') {
      const fresh = [...codes.difference(printed)]
      process.stdout.write(fresh.map((each) => `${each}\n`).join(''))
      for (const each of fresh) printed.add(each)
    } else {
      const links = await readLinks(reader, codes)
      const linkOf = (report: ListedReport) => links.get(report.short_code) ?? null
      const jsonOf = (each: ListedReport) => renderJson(each, linkOf(each))
      const isTable = output === 'table'
      process.stdout.write(isTable ? renderList(reports, linkOf) : reports.map(jsonOf).join(''))
    }
    if (hasMore)
      process.stderr.write(
        `curtail: more reports match than --limit=${limit}: it lists the newest\n`,
      )
  }
}

async function show(reader: ReportReader, { id, isJson }: ShowArguments): Promise<string> {
  const { target, signal } = reader
  const request = { method: 'GET', path: `/admin/reports/${id}` }
  const report = await untilAborted(signal, callAdminApiOnce(target, request, reportShape))
  const link = (await readLinks(reader, [report.short_code])).get(report.short_code) ?? null
  return isJson ? renderJson(report, link) : renderReport(report, link)
}

/** One line; it has no control characters, and is still JSON. */
function renderJson(report: ListedReport, link: ReportedLink): string {
  return `${escapeInvisible(renderJsonLines([{ ...report, link }]).trimEnd())}\n`
}

const stateOf = (link: ReportedLink) => (link === null ? 'not found' : shownState(link))

const HEADINGS = ['TIME', 'ID', 'CODE', 'REASON', 'STATE', 'TARGET']
/** The widths of the columns TIME to STATE, which are the same on every page. */
const WIDTHS = [24, 16, CODE_LENGTH_MAX, 8, 9]

function renderLines(lines: readonly (readonly string[])[]): string {
  const [first, ...others] = lines.map((cells) =>
    cells.map((cell, i) => cell.padEnd(WIDTHS[i] ?? 0)),
  )
  return first === undefined ? '' : renderTable(first, others)
}

function renderList(
  reports: readonly ListedReport[],
  linkOf: (report: ListedReport) => ReportedLink,
): string {
  const rows = reports.map((report) => {
    const link = linkOf(report)
    const { received_at: time, id, short_code: code, reason } = report
    return [time, id, code, reason, stateOf(link), link?.long_url ?? '-'].map(escapeInvisible)
  })
  return renderLines(rows)
}

function renderReport(report: ListedReport, link: ReportedLink): string {
  const { id, received_at: time, short_code: code, reason, contact, details } = report
  const fields: (readonly [string, string])[] = [
    ['Report', id],
    ['Time', time],
    ['Code', code],
    ['Reason', reason],
    ['State', stateOf(link)],
    ['Target', link?.long_url ?? '-'],
    ['Contact', contact ?? '-'],
  ]
  const lines = fields.map(([name, value]) => `${`${name}:`.padEnd(9)}${escapeInvisible(value)}\n`)
  const detailLines = (details ?? '-').split('\n').map((line) => `  ${escapeInvisible(line)}\n`)
  return [...lines, 'Details:\n', ...detailLines].join('')
}
