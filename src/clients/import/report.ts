// The report of an import: one JSON line for each row that was not imported, and for each row whose
// code was replaced; these lines map old codes to new ones.
import { type FileHandle, open } from 'node:fs/promises'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { OperatorError } from '../../process/role.ts'
import { messageOf } from '../../resilience/message-of.ts'
import type { ImportResult } from '../../transfer/import-result.ts'

/** The result of a row, with its number and its line in the file. */
export interface RowResult extends ImportResult {
  readonly row: number
  readonly line: number
}

/** Where the report is written. */
export interface Report {
  /** Appends the lines of results; resolves to the length of the report in bytes. */
  append(results: readonly RowResult[]): Promise<number>
  close(): Promise<void>
}

/** Whether the code of a row was replaced. */
export function isReplaced({ short_code, code }: ImportResult): boolean {
  return code !== null && code !== short_code
}

function linesOf(results: readonly RowResult[]): string {
  return results
    .filter((one) => isReplaced(one) || !['created', 'exists'].includes(one.result))
    .map(({ row, line, ...result }) => `${JSON.stringify({ row, line, ...result })}\n`)
    .join('')
}

/** A report on a stream, such as stderr. */
export function createStreamReport(stream: Writable): Report {
  return {
    async append(results) {
      const lines = linesOf(results)
      if (lines !== '' && !stream.write(lines)) await once(stream, 'drain')
      return 0
    },
    close: () => Promise.resolve(),
  }
}

/**
 * Opens a report file and keeps its first `keptBytes`: the lines of rows that a killed command had
 * recorded as imported. The lines of later rows are written when these rows are retried.
 */
export async function openReport(path: string, keptBytes: number): Promise<Report> {
  const file = await openFile(path)
  const { size } = await file.stat()
  if (size < keptBytes) {
    await file.close()
    const lacks = `${path} lacks lines of rows that the progress file records as imported`
    throw new OperatorError(`${lacks}: delete the progress file to import from the first row`)
  }
  await file.truncate(keptBytes)
  let bytes = keptBytes
  return {
    async append(results) {
      const lines = Buffer.from(linesOf(results))
      await writeAll(file, lines, { at: bytes, path })
      bytes += lines.length
      return bytes
    },
    close: () => file.close(),
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r+').catch(() => open(path, 'w+'))
  } catch (error) {
    throw new OperatorError(`cannot write the report ${path} (${messageOf(error)}): set --report`)
  }
}

async function writeAll(
  file: FileHandle,
  bytes: Buffer,
  { at, path }: { at: number; path: string },
): Promise<void> {
  try {
    for (let written = 0; written < bytes.length;) {
      const rest = bytes.subarray(written)
      written += (await file.write(rest, 0, rest.length, at + written)).bytesWritten
    }
  } catch (error) {
    throw new OperatorError(`cannot write the report ${path} (${messageOf(error)})`)
  }
}
