// Reads CSV (RFC 4180) as a stream: fields in quotes, with commas, quotes and line breaks in them;
// lines that end with CRLF or LF. The first record is the header. Strict: a damaged record is a
// fault, never a guess.
import { type FileRecord, FormatError, RECORD_CHARACTERS_MAX } from '../format.ts'

/** The fields of a record by the names of the header. */
export type CsvFields = ReadonlyMap<string, string>

const FIELDS_MAX = 100
const QUOTE = '"'

/** A record of the file, before it is compared with the header. */
interface RawRecord {
  readonly line: number
  readonly fields: readonly string[]
  readonly fault: string | undefined
  /** Whether the file ends within its last field, without quotes: the field may be incomplete. */
  readonly isOpen?: boolean
}

/** Columns that are not imported. Shlink and YOURLS have them last. */
const IGNORED = new Set(['visits', 'clicks', 'hits'])

/** Yields the records after the header; `checkHeader` returns why a header is invalid. */
export async function* csvRecords(
  file: AsyncIterable<string>,
  checkHeader: (names: readonly string[]) => string | undefined,
): AsyncGenerator<FileRecord<CsvFields>, void, undefined> {
  let header: readonly string[] | undefined
  let row = 0
  for await (const { line, fields, fault, isOpen = false } of rawRecords(file)) {
    if (header === undefined) {
      header = fields.map((name) => name.trim())
      const isTwice = new Set(header).size < header.length
      const problem =
        fault ?? (isTwice ? 'it names a column twice' : undefined) ?? checkHeader(header)
      if (problem !== undefined) throw new FormatError(`the header line is invalid: ${problem}`)
      continue
    }
    row++
    const { length } = header
    const counted = `line ${line} has ${fields.length} fields, but the header has ${length}`
    // A target that was cut off could never be corrected.
    const isCut = isOpen && !IGNORED.has(header.at(-1) ?? '')
    const cut = isCut
      ? `line ${line} has no line break at its end: it may be incomplete`
      : undefined
    const problem = fault ?? (fields.length === length ? cut : counted)
    if (problem !== undefined) yield { row, line, fault: problem }
    else yield { row, line, value: new Map(header.map((name, i) => [name, fields[i] ?? ''])) }
  }
  if (header === undefined) throw new FormatError('the file is empty: it has no header line')
}

async function* rawRecords(file: AsyncIterable<string>): AsyncGenerator<RawRecord, void> {
  const reader = new RecordReader()
  for await (const characters of file) {
    for (const character of characters) {
      const record = reader.read(character)
      if (record !== undefined) yield record
    }
  }
  const last = reader.end()
  if (last !== undefined) yield last
}

/** `quote`: a quote in a quoted field was read, which closes the field or is escaped. */
type State = 'start' | 'plain' | 'quoted' | 'quote' | 'skipped'

/** Reads one character at a time, and returns each completed record. */
class RecordReader {
  #state: State = 'start'
  #line = 1
  #firstLine = 1
  #fields: string[] = []
  #field = ''
  #size = 0
  #fault: string | undefined

  read(character: string): RawRecord | undefined {
    if (character === '\n') this.#line++
    if (character === '\n' && this.#state !== 'quoted') return this.#complete()
    this.#size++
    if (this.#size > RECORD_CHARACTERS_MAX && this.#state !== 'skipped') {
      const problem = `it has more than ${RECORD_CHARACTERS_MAX} characters`
      if (this.#state === 'quoted') throw this.#damaged(problem)
      this.#skip(problem)
    }
    if (this.#state === 'quoted') this.#readQuoted(character)
    else if (this.#state === 'quote') this.#readAfterQuote(character)
    else if (this.#state !== 'skipped') this.#readPlain(character)
    return undefined
  }

  end(): RawRecord | undefined {
    if (this.#state === 'quoted') throw this.#damaged('a quote is not closed')
    const isOpen = this.#state !== 'quote'
    const record = this.#complete()
    return record && { ...record, isOpen }
  }

  #readQuoted(character: string): void {
    if (character === QUOTE) this.#state = 'quote'
    else this.#field += character
  }

  #readAfterQuote(character: string): void {
    if (character === QUOTE) {
      this.#field += QUOTE
      this.#state = 'quoted'
    } else if (character === ',') this.#endField()
    else if (character !== '\r') throw this.#damaged('characters follow a closing quote')
  }

  #readPlain(character: string): void {
    if (character === ',') this.#endField()
    else if (character !== QUOTE) {
      this.#field += character
      this.#state = 'plain'
    } else if (this.#state === 'start') this.#state = 'quoted'
    else this.#skip('a field that contains a quote must be quoted')
  }

  #endField(): void {
    this.#fields.push(this.#field)
    this.#field = ''
    this.#state = 'start'
    if (this.#fields.length > FIELDS_MAX) {
      throw this.#damaged(`it has more than ${FIELDS_MAX} fields`)
    }
  }

  /** Skips the rest of the line. */
  #skip(problem: string): void {
    this.#fault ??= `line ${this.#line}: ${problem}`
    this.#state = 'skipped'
    this.#field = ''
  }

  /** The error if it is unknown where the next record starts. */
  #damaged(problem: string): FormatError {
    return new FormatError(
      `the record that starts in line ${this.#firstLine} is damaged: ${problem}`,
    )
  }

  #complete(): RawRecord | undefined {
    const field = this.#state === 'plain' ? this.#field.replace(/\r$/, '') : this.#field
    const isBlank = this.#state !== 'quote' && this.#fields.length === 0 && field === ''
    const fault = this.#fault
    const record = { line: this.#firstLine, fields: [...this.#fields, field], fault }
    this.#state = 'start'
    this.#firstLine = this.#line
    this.#fields = []
    this.#field = ''
    this.#size = 0
    this.#fault = undefined
    return isBlank && fault === undefined ? undefined : record
  }
}
