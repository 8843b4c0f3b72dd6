// `curtail import`: imports the links of another shortener, or of an export, through the admin API.
import { createReadStream } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { type Counts, importFile } from '../clients/import/import-file.ts'
import { readProgress } from '../clients/import/progress-file.ts'
import { createStreamReport, openReport, type Report } from '../clients/import/report.ts'
import { createRowSender } from '../clients/import/send-rows.ts'
import { parseRate } from '../clients/parse-rate.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { checkOperator, operatorSetting } from '../http/admin/operator-setting.ts'
import { jsonFlag, operatorFlag, type Parsed } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { createProgressLine, type ProgressLine } from '../process/progress-line.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'
import { messageOf } from '../resilience/message-of.ts'
import { formats } from '../transfer/formats.ts'
import type { Format } from '../transfer/format.ts'

const RATE_DEFAULT = 500
const STDIN = '-'
/** Not all rows were imported, and a retry would not change that. */
const EXIT_INCOMPLETE = 3

const commands = {
  '': {
    about: '',
    operands: ['FILE|-'],
    flags: {
      format: {
        about: 'format of FILE',
        value: 'FORMAT',
        values: formats.map(({ name }) => name),
        isRequired: true,
      },
      rate: {
        about: `maximum number of rows per second, ${RATE_DEFAULT} by default`,
        value: 'ROWS_PER_SECOND',
      },
      report: {
        about:
          'file of the rows that were not imported and of the replaced codes; by default ' +
          'FILE.report.ndjson, or stderr for the standard input',
        value: 'FILE',
      },
      ...operatorFlag,
      ...jsonFlag,
    },
  },
} as const

/** `import`. */
export const role = defineRole({
  name: 'import',
  about:
    'Imports the links in FILE, or in the standard input, with their codes. An existing link is\n' +
    'never changed, so the command can be retried. If it is killed, the same command continues\n' +
    'after the rows that FILE.progress records. A code that is not allowed is replaced.\n' +
    'Exit codes: 0 if each row is imported or has expired; 1 if the import stopped or rows\n' +
    'failed: run the same command, after a correction if the file is malformed; 2 for wrong\n' +
    `usage; ${EXIT_INCOMPLETE} for conflicts or invalid rows, which the report lists.`,
  commands,
  settings: { ...clientSettings, OPERATOR: operatorSetting },
  check: parseImportArgs,
  run: async ({ config, args, signal }) => {
    const options = parseImportArgs(args)
    const { operator = config.OPERATOR } = args.flags
    const target = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN, operator }
    const { stderr } = process
    const isShown = stderr.isTTY && options.report !== undefined
    const display = createProgressLine(stderr, { items: 'rows', isShown })
    try {
      const onRetry = (cause: string) => {
        display.warn(`curtail: ${cause}; retrying`)
      }
      const send = createRowSender({ target, signal, onRetry })
      const counts = await runImport(options, { url: target.url, send, signal, display })
      display.complete()
      if (options.report !== undefined) reportFaulty(counts, options.report)
      process.stdout.write(
        args.flags.json
          ? renderJsonLines([{ rows: totalOf(counts), ...counts }])
          : summaryOf(counts),
      )
      return { exitCode: exitCodeOf(counts) }
    } finally {
      display.complete()
    }
  },
})

interface ImportArguments {
  readonly file: string
  readonly format: Format
  readonly rate: number
  /** The file of the report; undefined: stderr. */
  readonly report: string | undefined
}

async function runImport(
  { file, format, rate, report: reportPath }: ImportArguments,
  given: {
    readonly url: string
    readonly send: ReturnType<typeof createRowSender>
    readonly signal: AbortSignal
    readonly display: ProgressLine
  },
): Promise<Counts> {
  const { url, send, signal, display } = given
  const isStdin = file === STDIN
  if (!isStdin) await checkReadable(file)
  const path = `${file}.progress`
  const earlier = isStdin ? undefined : await readProgress(path)
  if (earlier !== undefined) {
    display.warn(`curtail: continuing after row ${earlier.rows}, which ${path} records`)
  }
  const report: Report =
    reportPath === undefined
      ? createStreamReport(process.stderr)
      : await openReport(reportPath, earlier?.reportBytes ?? 0)
  try {
    const bytes = bytesOf(isStdin ? process.stdin : createReadStream(file), file)
    return await importFile({
      rows: format.parse(bytes, { nowMs: Date.now() }),
      send,
      report,
      rowsPerSecond: rate,
      progress: isStdin ? undefined : { path, format: format.name, url, earlier },
      signal,
      onBatch: (counts) => {
        display.update(totalOf(counts))
      },
    })
  } finally {
    await report.close()
  }
}

async function* bytesOf(
  stream: Readable,
  name: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const bytes of stream) yield bytes as Uint8Array
  } catch (error) {
    throw new OperatorError(`cannot read ${name} (${messageOf(error)})`)
  }
}

async function checkReadable(file: string): Promise<void> {
  try {
    await access(file, constants.R_OK)
  } catch (error) {
    throw new OperatorError(`cannot read ${file} (${messageOf(error)})`)
  }
}

function parseImportArgs({ operands, flags }: Parsed<typeof commands>): ImportArguments {
  checkOperator(flags.operator)
  const [file = ''] = operands
  const format = formats.find(({ name }) => name === flags.format)
  if (format === undefined) throw new Error(`unknown format ${flags.format}`)
  const { rate = String(RATE_DEFAULT) } = flags
  const report = flags.report ?? (file === STDIN ? undefined : `${file}.report.ndjson`)
  if (report !== undefined && resolve(report) === resolve(file)) {
    throw new UsageError(`--report must not be the imported FILE: it is ${quote(report)}`)
  }
  return { file, format, rate: parseRate(rate), report }
}

const quote = (value: string) => JSON.stringify(value)

function exitCodeOf({ failed, conflict, invalid }: Counts): number {
  if (failed > 0) return 1
  return conflict + invalid > 0 ? EXIT_INCOMPLETE : 0
}

/** Prints how many rows the report is about, and its path; stderr can itself be the report. */
function reportFaulty({ conflict, invalid, failed, replaced }: Counts, path: string): void {
  const missing = conflict + invalid + failed
  const items = [
    ...(missing > 0 ? [`rows not imported: ${missing}`] : []),
    ...(replaced > 0 ? [`codes replaced: ${replaced}`] : []),
  ]
  if (items.length === 0) return
  process.stderr.write(`curtail: ${items.join(', ')}; ${path} has the line and the cause of each\n`)
}

function totalOf(counts: Counts): number {
  return Object.values(counts).reduce((sum, count) => sum + count)
}

function summaryOf(counts: Counts): string {
  const headings = ['ROWS', ...Object.keys(counts).map((name) => name.toUpperCase())]
  const values = [totalOf(counts), ...Object.values(counts)]
  return renderTable(headings, [values.map(String)])
}
