// A format of files to import: bytes in, rows or faults out, with bounded memory.
import type { LinkRow } from './link-row.ts'

/** One link of a file, or why it cannot be read. */
export type ParsedRow = (
  { readonly link: LinkRow } | { readonly fault: string; readonly code: string | null }
) & {
  /** Number of the record in the file, from 1, without the header line. */
  readonly row: number
}

/** A parsed row with its place in the file. */
export type FileRow = ParsedRow & {
  /** The line of the file, from 1, in which the record starts. */
  readonly line: number
}

/** What a parser needs besides the file. */
export interface ParseContext {
  readonly nowMs: number
}

/** One format. */
export interface Format {
  readonly name: string
  /** Yields each link of the file, in order. Throws FormatError. */
  readonly parse: (file: AsyncIterable<Uint8Array>, context: ParseContext) => Rows
}

/** The rows of a file. */
export type Rows = AsyncGenerator<FileRow, void, undefined>

/** A record of a file, or why it cannot be read. */
export type FileRecord<T> = ({ readonly value: T } | { readonly fault: string }) & {
  /** From 1, without the header line. */
  readonly row: number
  /** The line of the file, from 1, in which it starts. */
  readonly line: number
}

/** Converts records to rows; a record that cannot be read becomes a row with its fault. */
export async function* rowsOf<T>(
  records: AsyncIterable<FileRecord<T>>,
  convert: (row: number, value: T) => readonly ParsedRow[],
): Rows {
  for await (const record of records) {
    const { row, line } = record
    if ('fault' in record) yield { row, line, fault: record.fault, code: null }
    else for (const parsed of convert(row, record.value)) yield { ...parsed, line }
  }
}

/** The file cannot be read further: it has another format, or is damaged. */
export class FormatError extends Error {
  override readonly name = 'FormatError'
}

/** Maximum length of one record of a file, in characters. */
export const RECORD_CHARACTERS_MAX = 131_072

/** Decodes a file in UTF-8, without its byte order mark. Throws FormatError. */
export async function* decode(
  file: AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decodeNext = (bytes?: Uint8Array) => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
    } catch {
      throw new FormatError('the file is not encoded in UTF-8')
    }
  }
  for await (const bytes of file) {
    const characters = decodeNext(bytes)
    if (characters !== '') yield characters
  }
  decodeNext()
}

/** The first character that is not white space, and the whole file. */
export async function peek(
  file: AsyncGenerator<string, void, undefined>,
): Promise<{ first: string; file: AsyncGenerator<string, void, undefined> }> {
  const read: string[] = []
  let first = ''
  for (let length = 0; first === '' && length < RECORD_CHARACTERS_MAX;) {
    const { value, done } = await file.next()
    if (done === true) break
    read.push(value)
    length += value.length
    first = value.trimStart().slice(0, 1)
  }
  async function* whole() {
    yield* read
    yield* file
  }
  return { first, file: whole() }
}
