// Reads blocks of header fields (HPACK, RFC 7541) and keeps the table that they build up. What it
// keeps and gives is bounded; a block that breaks the format is an error of the whole connection.
import { errorCodes } from './frames.ts'
import type { Budget } from './process-bounds.ts'
import { readHuffman } from './huffman.ts'
import { ProtocolError } from './protocol-error.ts'
import { staticHeaders } from './static-headers.ts'

/** A header field; the same object each time it comes from the table. */
export interface HeaderField {
  readonly name: string
  /** One character for each byte. */
  readonly value: string
  /** What it counts for in tables and lists. */
  readonly bytes: number
  /** Whether HTTP/2 allows such a name and value (RFC 9113 §8.2.1). */
  readonly isValid: boolean
}

/** Bytes of the table of fields that a client may build up: what HTTP/2 begins with. */
const TABLE_BYTES_MAX = 4096
/** What a field counts for beside its name and value. */
const FIELD_BYTES = 32
const TABLE_FACTOR = 3
/** More than any length that fits into a block. */
const NUMBER_MAX = 2 ** 24

/** No capitals, controls or spaces in names; no line ends in values, nor spaces around them. */
const validName = /^:?[!#-'*+.^_`|~0-9a-z-]+$/
const validValue = /^(?![ \t])[^\0\r\n]*(?<![ \t])$/

const known: readonly HeaderField[] = staticHeaders.map(([name, value]) => fieldOf(name, value))

function fieldOf(name: string, value: string): HeaderField {
  const bytes = name.length + value.length + FIELD_BYTES
  return { name, value, bytes, isValid: validName.test(name) && validValue.test(value) }
}

function fault(why: string): ProtocolError {
  return new ProtocolError(errorCodes.compression, why)
}

/** Reads the blocks of one connection, each once and in their order. */
export class HpackDecoder {
  /** The newest is the last. */
  private readonly table: HeaderField[] = []
  private tableBytes = 0
  private tableBytesMax = TABLE_BYTES_MAX
  private block: Buffer = Buffer.alloc(0)
  private at = 0
  private readonly budget: Budget | undefined
  private held = 0
  /** What the last block cost: a field, or one that it evicted, is 1. */
  work = 0

  constructor(budget?: Budget) {
    this.budget = budget
  }

  /** Keeps nothing of the table in the budget. */
  clear(): void {
    this.budget?.give(this.held)
    this.held = 0
  }

  /**
   * Reads a block. Undefined if its fields count for more than `bytesMax`; the table is right
   * nevertheless. Throws ProtocolError.
   */
  read(block: Buffer, bytesMax: number): HeaderField[] | undefined {
    this.block = block
    this.at = 0
    this.work = 0
    const fields: HeaderField[] = []
    let bytes = 0
    while (this.at < block.length) {
      const first = block[this.at] ?? 0
      this.work += 1
      if ((first & 0xe0) === 0x20) {
        if (bytes > 0) throw fault('the size of the table changes within a block')
        this.resize(this.number(5))
        continue
      }
      const field = first >= 0x80 ? this.found(this.number(7)) : this.literal(first)
      bytes += field.bytes
      if (bytes <= bytesMax) fields.push(field)
    }
    this.count()
    return bytes <= bytesMax ? fields : undefined
  }

  /** A table takes some times the bytes that it counts for. */
  private count(): void {
    const more = TABLE_FACTOR * this.tableBytes - this.held
    if (more <= 0) this.budget?.give(-more)
    else if (this.budget?.take(more) === false) {
      throw new ProtocolError(errorCodes.enhanceYourCalm, 'too many fields are kept')
    }
    this.held += more
  }

  private literal(first: number): HeaderField {
    const isKept = first >= 0x40
    const nameAt = this.number(isKept ? 6 : 4)
    const name = nameAt === 0 ? this.text() : this.found(nameAt).name
    const field = fieldOf(name, this.text())
    if (isKept) this.keep(field)
    return field
  }

  private found(number: number): HeaderField {
    const { table } = this
    const field =
      number <= known.length ? known[number - 1] : table[table.length - (number - known.length)]
    if (field === undefined) throw fault('there is no field of this number')
    return field
  }

  private keep(field: HeaderField): void {
    this.table.push(field)
    this.tableBytes += field.bytes
    this.evict()
  }

  private resize(bytesMax: number): void {
    if (bytesMax > TABLE_BYTES_MAX) throw fault('the table is larger than was agreed')
    this.tableBytesMax = bytesMax
    this.evict()
  }

  private evict(): void {
    while (this.tableBytes > this.tableBytesMax) {
      this.work += 1
      this.tableBytes -= this.table.shift()?.bytes ?? 0
    }
  }

  /** A number whose first bits are the last `bits` of the next byte (RFC 7541 §5.1). */
  private number(bits: number): number {
    const mask = 2 ** bits - 1
    let number = (this.block[this.at++] ?? 0) & mask
    if (number < mask) return number
    for (let factor = 1; ; factor *= 128) {
      const byte = this.block[this.at++]
      if (byte === undefined) throw fault('a block ends within a number')
      number += (byte & 127) * factor
      if (number > NUMBER_MAX || factor > NUMBER_MAX) throw fault('a number is too large')
      if (byte < 128) return number
    }
  }

  private text(): string {
    const isHuffman = (this.block[this.at] ?? 0) >= 0x80
    if (this.at >= this.block.length) throw fault('a block ends within a field')
    const length = this.number(7)
    const begin = this.at
    const end = begin + length
    if (end > this.block.length) throw fault('a text is longer than its block')
    this.at = end
    if (!isHuffman) return this.block.toString('latin1', begin, end)
    const text = readHuffman(this.block, begin, end)
    if (text === undefined) throw fault('a text is not in Huffman’s code')
    return text
  }
}
