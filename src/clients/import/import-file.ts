// Imports the rows of a file through the admin API: batch by batch, at a bounded rate, with one
// batch in memory.
import { OperatorError } from '../../process/role.ts'
import { monotonicMs, pause as wait, type Pause } from '../../resilience/deadline.ts'
import { FormatError, type FileRow, type Rows } from '../../transfer/format.ts'
import { BATCH_ROWS_MAX, type ImportResult } from '../../transfer/import-result.ts'
import {
  createRowsDigest,
  deleteProgress,
  ForeignProgressError,
  type Progress,
  type RowsDigest,
  writeProgress,
} from './progress-file.ts'
import { isReplaced, type Report, type RowResult } from './report.ts'
import type { RowSender } from './send-rows.ts'

/** Rows by their result; `replaced` rows are created or exist, under another code. */
export type Counts = Record<ImportResult['result'] | 'replaced', number>

/** What to import, and how. */
export interface ImportOptions {
  readonly rows: Rows
  readonly send: RowSender
  readonly report: Report
  readonly rowsPerSecond: number
  /** The file that records the progress, and its content after an earlier run. */
  readonly progress:
    | {
        readonly path: string
        readonly format: string
        readonly url: string
        readonly earlier: Progress | undefined
      }
    | undefined
  readonly signal: AbortSignal
  /** Called after each batch. */
  readonly onBatch: (counts: Counts) => void
  /** Waits before the next batch; tests replace it and the clock. */
  readonly pause?: Pause
  readonly nowMs?: () => number
}

/** At a low rate, batches are small, so that the load is even. */
const BATCHES_PER_SECOND = 4
/** Characters of the rows of a batch; in UTF-8 they have at most three times as many bytes. */
const BATCH_CHARACTERS_MAX = 600_000
const RECORD_EVERY_MS = 1000

/** Imports all rows; resolves to the number of rows by result. Throws OperatorError. */
export async function importFile(options: ImportOptions): Promise<Counts> {
  const { rows, rowsPerSecond, signal, onBatch, pause = wait, nowMs = monotonicMs } = options
  const digest = createRowsDigest()
  const recorder = createRecorder(options, digest)
  try {
    await skipImported(options, digest)
    for await (const batch of batchesOf(rows, rowsPerSecond)) {
      if (signal.aborted) throw new OperatorError('a signal was received')
      const startedMs = nowMs()
      const results = await importBatch(options.send, batch)
      for (const row of batch) digest.add(row)
      await recorder.add(results)
      onBatch(recorder.counts)
      const tookMs = nowMs() - startedMs
      await pause(Math.max(0, (batch.length / rowsPerSecond) * 1000 - tookMs), signal)
    }
  } catch (error) {
    if (error instanceof ForeignProgressError) throw error
    await recorder.record()
    const cause = causeOf(error)
    if (cause === undefined) throw error
    const after = `import stopped after ${recorder.rows()} rows: ${cause}`
    throw new OperatorError(`${after}; ${hintOf(error, options)}`)
  }
  await recorder.complete()
  return recorder.counts
}

/** The cause of an expected error, for operators. */
function causeOf(error: unknown): string | undefined {
  if (error instanceof FormatError) return `cannot read the next row: ${error.message}`
  return error instanceof OperatorError ? error.message : undefined
}

function hintOf(error: unknown, { progress }: ImportOptions): string {
  if (error instanceof FormatError) return 'correct the file, then run the same command'
  return `the same command ${progress === undefined ? 'imports all rows' : 'continues there'}`
}

/** Reads the rows that an earlier run has imported, without sending them. */
async function skipImported({ rows, progress }: ImportOptions, digest: RowsDigest): Promise<void> {
  const { path = '', earlier, format, url } = progress ?? {}
  if (earlier === undefined) return
  if (earlier.format !== format)
    throw new ForeignProgressError(path, `its format is ${earlier.format}`)
  if (earlier.url !== url) throw new ForeignProgressError(path, `its ADMIN_URL is ${earlier.url}`)
  for (let i = 0; i < earlier.rows; i++) {
    const { value, done } = await rows.next()
    if (done === true)
      throw new ForeignProgressError(path, `it has ${earlier.rows} rows, the file has only ${i}`)
    digest.add(value)
  }
  if (digest.read() !== earlier.digest) {
    throw new ForeignProgressError(
      path,
      `its first ${earlier.rows} rows differ from those of the file`,
    )
  }
}

async function* batchesOf(
  rows: Rows,
  rowsPerSecond: number,
): AsyncGenerator<readonly FileRow[], void, undefined> {
  const rowsMax = Math.min(BATCH_ROWS_MAX, Math.ceil(rowsPerSecond / BATCHES_PER_SECOND))
  let batch: FileRow[] = []
  let characters = 0
  for await (const row of rows) {
    const size = JSON.stringify(row).length
    if (
      batch.length === rowsMax ||
      (batch.length > 0 && characters + size > BATCH_CHARACTERS_MAX)
    ) {
      yield batch
      batch = []
      characters = 0
    }
    batch.push(row)
    characters += size
  }
  if (batch.length > 0) yield batch
}

async function importBatch(send: RowSender, batch: readonly FileRow[]): Promise<RowResult[]> {
  const links = batch.flatMap((row) => ('link' in row ? [row.link] : []))
  const results = links.length === 0 ? [] : [...(await send(links))]
  return batch.map((parsed) => {
    const { row, line } = parsed
    if ('fault' in parsed) {
      const { code: short_code, fault: detail } = parsed
      return { row, line, short_code, result: 'invalid', code: null, detail }
    }
    const result = results.shift()
    if (result === undefined) throw new Error('a row has no result')
    return { row, line, ...result }
  })
}

/** Counts the results, writes the report, and records the progress once per second. */
function createRecorder({ report, progress }: ImportOptions, digest: RowsDigest) {
  const none: Counts = {
    created: 0,
    exists: 0,
    replaced: 0,
    conflict: 0,
    invalid: 0,
    expired: 0,
    failed: 0,
  }
  const counts: Counts = { ...none, ...progress?.earlier?.counts }
  let rows = progress?.earlier?.rows ?? 0
  let reportBytes = progress?.earlier?.reportBytes ?? 0
  let recordedRows = rows
  let recordedMs = monotonicMs()
  const record = async () => {
    if (progress === undefined || rows === recordedRows) return
    const { path, format, url } = progress
    await writeProgress(path, { format, url, rows, digest: digest.read(), reportBytes, counts })
    recordedRows = rows
    recordedMs = monotonicMs()
  }
  return {
    counts,
    rows: () => rows,
    record,
    async add(results: readonly RowResult[]) {
      reportBytes = await report.append(results)
      for (const result of results) counts[isReplaced(result) ? 'replaced' : result.result]++
      rows += results.length
      if (monotonicMs() - recordedMs >= RECORD_EVERY_MS) await record()
    },
    async complete() {
      if (progress !== undefined) await deleteProgress(progress.path)
    },
  }
}
