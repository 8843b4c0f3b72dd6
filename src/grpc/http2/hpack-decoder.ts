// Decodes field blocks (HPACK, RFC 7541) and maintains their dynamic table. Table and result are
// bounded; a malformed block is a connection error.
import { EMPTY } from './copy-of.ts'
import { errorCodes } from './frames.ts'
import type { Budget } from './process-bounds.ts'
import { decodeHuffman } from './huffman.ts'
import { ProtocolError } from './protocol-error.ts'
import { staticHeaders } from './static-headers.ts'

/** A header field. All references to one entry of the table return the same object. */
export interface HeaderField {
  readonly name: string
  /** One character for each byte. */
  readonly value: string
  /** Its size in tables and lists (RFC 7541 §4.1). */
  readonly bytes: number
  /** Whether HTTP/2 allows its name and value (RFC 9113 §8.2.1). */
  readonly isValid: boolean
}

/** The default SETTINGS_HEADER_TABLE_SIZE: the maximum size of the dynamic table. */
const HEADER_TABLE_SIZE = 4096
/** A field's overhead in the size of tables and lists. */
const FIELD_BYTES = 32
/** Memory of the table, as a multiple of its HPACK size (RFC 7541 §4.1). */
const TABLE_FACTOR = 3
/** Maximum of an integer: larger than any length in a block. */
const NUMBER_MAX = 2 ** 24

/** A lower-case token; `:` is the prefix of a pseudo-header. */
const validName = /^:?[!#-'*+.^_`|~0-9a-z-]+$/
/** Without NUL, CR, LF, and without leading and trailing spaces and tabs. */
const validValue = /^(?![ \t])[^\0\r\n]*(?<![ \t])$/

const staticTable: readonly HeaderField[] = staticHeaders.map(([name, value]) =>
  fieldOf(name, value),
)

function fieldOf(name: string, value: string): HeaderField {
  const bytes = name.length + value.length + FIELD_BYTES
  return { name, value, bytes, isValid: validName.test(name) && validValue.test(value) }
}

function fault(reason: string): ProtocolError {
  return new ProtocolError(errorCodes.compression, reason)
}

/** Decodes the blocks of one connection, which must be passed in order. */
export class HpackDecoder {
  /** The dynamic table; the newest field is last. */
  private readonly table: HeaderField[] = []
  private tableBytes = 0
  private tableBytesMax = HEADER_TABLE_SIZE
  /** Empty between blocks: a slice would keep its whole buffer in memory. */
  private block = EMPTY
  private at = 0
  private readonly budget: Budget | undefined
  private heldBytes = 0
  /** Cost of the last block: 1 for each field, table size update and eviction. */
  cost = 0

  constructor(budget?: Budget) {
    this.budget = budget
  }

  /** Releases the table's budget and the block. */
  clear(): void {
    this.block = EMPTY
    this.budget?.release(this.heldBytes)
    this.heldBytes = 0
  }

  /**
   * Decodes a block; `undefined` if its fields exceed `bytesMax`. Updates the table in both cases.
   * Throws ProtocolError.
   */
  decode(block: Buffer, bytesMax: number): HeaderField[] | undefined {
    this.block = block
    this.at = 0
    this.cost = 0
    const fields: HeaderField[] = []
    let bytes = 0
    while (this.at < block.length) {
      const first = block[this.at] ?? 0
      this.cost += 1
      if ((first & 0xe0) === 0x20) {
        if (bytes > 0) throw fault('a table size update follows a field')
        this.resize(this.number(5))
        continue
      }
      const field = first >= 0x80 ? this.lookUp(this.number(7)) : this.literal(first)
      bytes += field.bytes
      if (bytes <= bytesMax) fields.push(field)
    }
    this.block = EMPTY
    this.updateBudget()
    return bytes <= bytesMax ? fields : undefined
  }

  /** Acquires or releases the difference to the current memory of the table. */
  private updateBudget(): void {
    const more = TABLE_FACTOR * this.tableBytes - this.heldBytes
    if (more <= 0) this.budget?.release(-more)
    else if (this.budget?.acquire(more) === false) {
      throw new ProtocolError(errorCodes.enhanceYourCalm, 'the dynamic tables are too large')
    }
    this.heldBytes += more
  }

  private literal(first: number): HeaderField {
    const isIndexed = first >= 0x40
    const nameAt = this.number(isIndexed ? 6 : 4)
    const name = nameAt === 0 ? this.string() : this.lookUp(nameAt).name
    const field = fieldOf(name, this.string())
    if (isIndexed) this.insert(field)
    return field
  }

  private lookUp(index: number): HeaderField {
    const { table } = this
    const dynamicIndex = index - staticTable.length
    const field = dynamicIndex <= 0 ? staticTable[index - 1] : table[table.length - dynamicIndex]
    if (field === undefined) throw fault('invalid index of a header field')
    return field
  }

  private insert(field: HeaderField): void {
    this.table.push(field)
    this.tableBytes += field.bytes
    this.evict()
  }

  private resize(bytesMax: number): void {
    if (bytesMax > HEADER_TABLE_SIZE) throw fault('a table size update is too large')
    this.tableBytesMax = bytesMax
    this.evict()
  }

  private evict(): void {
    while (this.tableBytes > this.tableBytesMax) {
      this.cost += 1
      this.tableBytes -= this.table.shift()?.bytes ?? 0
    }
  }

  /** An integer with a prefix of `bits` bits (RFC 7541 §5.1). */
  private number(bits: number): number {
    const mask = 2 ** bits - 1
    let number = (this.block[this.at++] ?? 0) & mask
    if (number < mask) return number
    for (let factor = 1; ; factor *= 128) {
      const byte = this.block[this.at++]
      if (byte === undefined) throw fault('a field block is truncated within an integer')
      number += (byte & 127) * factor
      if (number > NUMBER_MAX || factor > NUMBER_MAX) throw fault('an integer is too large')
      if (byte < 128) return number
    }
  }

  private string(): string {
    const isHuffman = (this.block[this.at] ?? 0) >= 0x80
    if (this.at >= this.block.length) throw fault('a field block is truncated within a field')
    const length = this.number(7)
    const start = this.at
    const end = start + length
    if (end > this.block.length) throw fault('a string exceeds its field block')
    this.at = end
    if (!isHuffman) return this.block.toString('latin1', start, end)
    const string = decodeHuffman(this.block, start, end)
    if (string === undefined) throw fault('a string has an invalid Huffman encoding')
    return string
  }
}
