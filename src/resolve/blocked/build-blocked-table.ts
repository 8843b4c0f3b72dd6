// Builds the table of blocked targets from the bytes of files, in short steps.
import { parseBlockedEntry } from '../../links/blocked-entry.ts'
import type { BlockedTable } from '../../links/blocked-table.ts'
import { createTableBuilder } from '../../links/blocked-table-builder.ts'

/** A file with one entry per line. */
export interface BlockedFile {
  readonly path: string
  readonly content: Buffer
}

/** A table, and the lines that were ignored. */
export interface BuiltTable {
  readonly table: BlockedTable
  readonly entries: number
  /** One sentence per line; at most FAULTS_MAX. */
  readonly faults: readonly string[]
}

/** Maximum number of entries in all files together. */
export const ENTRIES_MAX = 2_000_000
/** Maximum number of faulty lines that are recorded, to bound memory. */
export const FAULTS_MAX = 1000
/** A step takes less than 5 ms, even if it doubles the table, for files below 256 KiB. */
const LINES_PER_STEP = 500
/** The typical length of a line, to reserve memory. */
const LINE_BYTES = 20
/** Estimated ratio of the size of the records to that of the files: each record has a header. */
const RECORD_BYTES_PER_FILE_BYTE = 1.25
const NEWLINE = 10

/**
 * Builds a table with this seed; yields between steps. `bytes` is the total size of the files,
 * which are read one after the other. Throws an error if there are too many entries.
 */
export function* buildBlockedTable(
  files: Iterable<BlockedFile>,
  { bytes, seed }: { readonly bytes: number; readonly seed: number },
): Generator<void, BuiltTable> {
  const builder = createTableBuilder({
    entries: Math.min(ENTRIES_MAX, bytes / LINE_BYTES),
    bytes: Math.ceil(bytes * RECORD_BYTES_PER_FILE_BYTE),
    seed,
  })
  const faults: string[] = []
  let lines = 0
  for (const { path, content } of files) {
    let number = 0
    for (let start = 0; start < content.length;) {
      const newline = content.indexOf(NEWLINE, start)
      const end = newline < 0 ? content.length : newline
      const entry = parseBlockedEntry(content.toString('utf8', start, end))
      start = end + 1
      number++
      if (entry !== undefined && !('fault' in entry)) builder.add(entry)
      else if (entry !== undefined && faults.length < FAULTS_MAX) {
        faults.push(`${path}:${number}: the entry ${entry.fault}`)
      }
      if (builder.entries() > ENTRIES_MAX) {
        throw new Error(`the files have more than ${ENTRIES_MAX} entries`)
      }
      if (++lines % LINES_PER_STEP === 0) yield
    }
  }
  return { table: builder.finish(), entries: builder.entries(), faults }
}
