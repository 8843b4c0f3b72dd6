// The progress file of an import: how many rows of the file were imported, so that the next run
// after a killed one continues there. The file only saves time: a row can be imported any number of
// times. It contains a digest of these rows, so that the progress of another file is rejected.
import { createHash, type Hash } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import * as z from 'zod'
import { OperatorError } from '../../process/role.ts'
import { messageOf } from '../../resilience/message-of.ts'
import type { ParsedRow } from '../../transfer/format.ts'

const progressShape = z.object({
  /** What the rows were read as, and where they were sent. */
  format: z.string(),
  url: z.string(),
  /** The number of imported rows, and their digest. */
  rows: z.int().min(0),
  digest: z.string(),
  /** The length of the report with their results. */
  reportBytes: z.int().min(0),
  counts: z.record(z.string(), z.int().min(0)),
})

/** The state of an import after some rows. */
export type Progress = z.output<typeof progressShape>

const RESTART = 'delete it to import the file from its first row'

/** Reads the progress file; `undefined` if there is none. Throws OperatorError. */
export async function readProgress(path: string): Promise<Progress | undefined> {
  const json = await readIfPresent(path)
  if (json === undefined) return undefined
  const progress = parseProgress(json)
  if (progress === undefined) throw new OperatorError(`${path} is not a progress file: ${RESTART}`)
  return progress
}

function parseProgress(json: string): Progress | undefined {
  try {
    return progressShape.parse(JSON.parse(json))
  } catch {
    return undefined
  }
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new OperatorError(`cannot read ${path} (${messageOf(error)})`)
  }
}

/** Replaces the progress file atomically, so that its fields always belong together. */
export async function writeProgress(path: string, progress: Progress): Promise<void> {
  try {
    await writeFile(`${path}.tmp`, `${JSON.stringify(progress)}\n`)
    await rename(`${path}.tmp`, path)
  } catch (error) {
    const hint = 'import a copy in a folder that can be written, or pipe the file to import -'
    throw new OperatorError(`cannot write ${path} (${messageOf(error)}): ${hint}`)
  }
}

/** Deletes the progress file of a completed import. */
export async function deleteProgress(path: string): Promise<void> {
  await rm(path, { force: true })
}

/** The progress does not belong to this import. */
export class ForeignProgressError extends OperatorError {
  constructor(path: string, cause: string) {
    super(`${path} belongs to another import: ${cause}; ${RESTART}`)
  }
}

/** A digest of rows, which can be read after each row. */
export interface RowsDigest {
  add(row: ParsedRow): void
  read(): string
}

/** Creates a digest, without any row yet. */
export function createRowsDigest(): RowsDigest {
  const hash: Hash = createHash('sha256')
  return {
    add(row) {
      // Without the line: an edit of the file may move rows, and earlier releases recorded none.
      hash.update(`${JSON.stringify({ ...row, line: undefined })}\n`)
    },
    read: () => hash.copy().digest('hex'),
  }
}
