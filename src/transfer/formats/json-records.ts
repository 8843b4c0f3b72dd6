// Reads the objects of a list in JSON documents as a stream. A file has one document or several,
// one after another, such as the pages of an API. Only one object is in memory at a time.
import type * as z from 'zod'
import {
  type FileRecord,
  FormatError,
  type ParsedRow,
  RECORD_CHARACTERS_MAX,
  type Rows,
  rowsOf,
} from '../format.ts'

const DEPTH_MAX = 100
const KEY_CHARACTERS_MAX = 100
const NO_OBJECT = 'a record of the list is not an object'

/** What the objects of a list are. */
interface ListOf<T> {
  /** The member that contains the list; a document can also be the list itself. */
  readonly list: string
  readonly shape: z.ZodType<T>
  /** Such as `a link of Kutt`. */
  readonly name: string
}

/** Converts the objects of the list in each document to rows. */
export function jsonRows<T>(
  file: AsyncIterable<string>,
  { list, shape, name }: ListOf<T>,
  convert: (row: number, value: T) => readonly ParsedRow[],
): Rows {
  return rowsOf(jsonRecords(file, list), (row, value) => {
    const parsed = shape.safeParse(value)
    if (parsed.success) return convert(row, parsed.data)
    return [{ row, fault: `it is not ${name}`, code: null }]
  })
}

/** Yields the objects of the member `list` of each document, or of a document that is a list. */
async function* jsonRecords(
  file: AsyncIterable<string>,
  list: string,
): AsyncGenerator<FileRecord<unknown>, void, undefined> {
  const scanner = new RecordScanner(list)
  let row = 0
  for await (const characters of file) {
    for (const character of characters) {
      const record = scanner.read(character)
      if (record === undefined) continue
      const { line } = record
      row++
      yield record.isTooLong
        ? { row, line, fault: `it has more than ${RECORD_CHARACTERS_MAX} characters` }
        : { row, line, ...parse(record.json) }
    }
  }
  scanner.end()
}

function parse(json: string): { value: unknown } | { fault: string } {
  try {
    return { value: JSON.parse(json) as unknown }
  } catch {
    return { fault: 'it is not valid JSON' }
  }
}

/** Reads one character at a time, and returns each completed object of the list. */
class RecordScanner {
  readonly #list: string
  readonly #open: string[] = []
  #isInString = false
  #isEscaped = false
  #lastString = ''
  /** Whether the current or last document has the list. */
  #hasList = false
  /** The depth of the list, and that of its object, while they are open; else 0. */
  #listDepth = 0
  #recordDepth = 0
  #record = ''
  #line = 1
  #recordLine = 1

  constructor(list: string) {
    this.#list = list
  }

  read(character: string): ScannedRecord | undefined {
    if (character === '\n') this.#line++
    if (this.#recordDepth > 0) this.#append(character)
    if (this.#isInString) {
      this.#readString(character)
      return undefined
    }
    if (character === '{' || character === '[') {
      this.#openNested(character)
      return undefined
    }
    if (character === '}' || character === ']') return this.#close(character)
    const depth = this.#open.length
    if ((depth === 0 || depth === this.#listDepth) && !/[\s,]/.test(character)) {
      throw new FormatError(depth === 0 ? 'it is not JSON' : NO_OBJECT)
    }
    this.#isInString = character === '"'
    if (this.#isInString) this.#lastString = ''
    return undefined
  }

  end(): void {
    if (this.#open.length > 0) throw new FormatError('the file ends inside a JSON document')
    if (!this.#hasList) throw new FormatError('the file has no JSON document')
  }

  #append(character: string): void {
    if (this.#record.length <= RECORD_CHARACTERS_MAX) this.#record += character
  }

  #readString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (character === '\\') this.#isEscaped = true
    else if (character === '"') this.#isInString = false
    if (this.#isInString && this.#lastString.length < KEY_CHARACTERS_MAX) {
      this.#lastString += character
    }
  }

  /** Opens an object or a list; whether it is the list of records depends on its member name. */
  #openNested(character: string): void {
    const depth = this.#open.length
    if (depth === 0) this.#hasList = false
    const isNamed = this.#lastString === this.#list && !this.#open.includes('[')
    if (depth >= DEPTH_MAX) throw new FormatError('its JSON is nested too deeply')
    if (character === '[' && this.#listDepth === 0 && (depth === 0 || isNamed)) {
      this.#listDepth = depth + 1
      this.#hasList = true
    } else if (depth === this.#listDepth && depth > 0) {
      if (character === '[') throw new FormatError(NO_OBJECT)
      this.#recordDepth = depth + 1
      this.#record = character
      this.#recordLine = this.#line
    }
    this.#open.push(character)
    this.#lastString = ''
  }

  #close(character: string): ScannedRecord | undefined {
    const opened = this.#open.pop()
    if (opened !== (character === '}' ? '{' : '[')) throw new FormatError('it is not valid JSON')
    const depth = this.#open.length
    if (depth < this.#listDepth) this.#listDepth = 0
    // A page with an error instead of links: its links would be missing.
    if (depth === 0 && !this.#hasList) {
      throw new FormatError(`a JSON document does not have the list ${this.#list}`)
    }
    if (this.#recordDepth === 0 || depth >= this.#recordDepth) return undefined
    this.#recordDepth = 0
    const isTooLong = this.#record.length > RECORD_CHARACTERS_MAX
    return { line: this.#recordLine, json: this.#record, isTooLong }
  }
}

interface ScannedRecord {
  readonly line: number
  readonly json: string
  readonly isTooLong: boolean
}
