// Reads protobuf's wire format for hand-written parsers; independent of the messages. Malformed
// bytes result in a WireError, never in a crash.
import { isAscii, isUtf8 } from 'node:buffer'
import { StacklessError } from './stackless-error.ts'
import { DELIMITED, DOUBLE, VARINT } from './wire-types.ts'

/** Wire types of unknown fields only. */
const GROUP = 3
const FLOAT = 5
/** Maximum depth of nested groups to skip; Envoy sends none. */
const GROUP_DEPTH_MAX = 32
/** In a larger message, short strings are cut from one decoded string: this is faster. */
const LARGE_BYTES = 4096
/** V8 copies a substring of at most 12 characters; a longer one would keep the whole message. */
const SUBSTRING_CHARACTERS_MAX = 12

/** Malformed bytes. */
export class WireError extends StacklessError {
  override readonly name = 'WireError'
}

/** Reads the bytes of one message. Its methods throw WireError for malformed bytes. */
export class WireReader {
  /** Position of the next byte. */
  at = 0
  /** The upper 32 bits of the last varint. */
  high = 0
  readonly length: number
  private readonly bytes: Buffer
  private readonly message: string
  /** The bytes of a large message as Latin-1, one character for each byte. */
  private readonly latin1: string | undefined
  /** The end of a field that has only ASCII bytes and contains the position. */
  private asciiEnd = 0

  /** `message` is the type in errors; `hasStrings`: whether most of it is short strings. */
  constructor(bytes: Buffer, message: string, hasStrings = true) {
    this.bytes = bytes
    this.message = message
    this.length = bytes.length
    this.latin1 = hasStrings && bytes.length > LARGE_BYTES ? bytes.toString('latin1') : undefined
  }

  /** Reads a varint; returns its lower 32 bits, with the upper ones in `high`. */
  varint(): number {
    const byte = this.bytes[this.at++]
    if (byte === undefined || byte > 127) return this.longVarint(byte)
    this.high = 0
    return byte
  }

  private longVarint(first: number | undefined): number {
    if (first === undefined) this.fail('truncated within a field')
    let low = first & 127
    let high = 0
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = this.bytes[this.at++]
      if (byte === undefined) this.fail('truncated within a varint')
      const bits = byte & 127
      if (shift < 32) low |= bits << shift
      if (shift === 28) high = bits >>> 4
      else if (shift > 28) high |= bits << (shift - 32)
      if (byte < 128) {
        if (shift === 63 && byte > 1) this.fail('a varint has more than 64 bits')
        this.high = high >>> 0
        return low >>> 0
      }
    }
    this.fail('a varint has more than 64 bits')
  }

  /** Reads a bool, which is true if any of the 64 bits is set. */
  bool(): boolean {
    return this.varint() !== 0 || this.high !== 0
  }

  /** Reads a tag: field number times 8 plus wire type. */
  tag(): number {
    const tag = this.varint()
    if (tag < 8 || this.high !== 0) this.fail('invalid field number')
    return tag
  }

  /** Reads a field's length; returns the position of its end. */
  endOfField(): number {
    const length = this.varint()
    const end = this.at + length
    if (this.high !== 0 || end > this.length) this.fail('a field extends beyond the message')
    return end
  }

  /** Like `endOfField`, for a field with many strings: they are then read faster. */
  endOfStrings(): number {
    const end = this.endOfField()
    const isLarge = this.latin1 !== undefined
    this.asciiEnd = isLarge && isAscii(this.bytes.subarray(this.at, end)) ? end : 0
    return end
  }

  /** Reads a string. */
  string(): string {
    const end = this.endOfField()
    const start = this.at
    this.at = end
    if (this.latin1 !== undefined && end - start <= SUBSTRING_CHARACTERS_MAX) {
      const string = this.latin1.slice(start, end)
      if (end <= this.asciiEnd || hasOnlyAscii(string)) return string
    }
    const string = this.bytes.toString('utf8', start, end)
    if (string.includes('\ufffd') && !isUtf8(this.bytes.subarray(start, end))) {
      this.fail('a string is not UTF-8')
    }
    return string
  }

  /** Reads the bytes of a field, which share the memory of the message. */
  delimited(): Buffer {
    const end = this.endOfField()
    const start = this.at
    this.at = end
    return this.bytes.subarray(start, end)
  }

  /** Reads a double. */
  double(): number {
    this.advance(8)
    return this.bytes.readDoubleLE(this.at - 8)
  }

  /** Skips the value of an unknown field. */
  skip(tag: number): void {
    this.skipValue(tag, 0)
  }

  private skipValue(tag: number, depth: number): void {
    const type = tag & 7
    if (type === VARINT) this.varint()
    else if (type === DELIMITED) this.at = this.endOfField()
    else if (type === DOUBLE) this.advance(8)
    else if (type === FLOAT) this.advance(4)
    else if (type === GROUP) this.skipGroup(tag, depth + 1)
    else this.fail('invalid wire type')
  }

  private advance(count: number): void {
    this.at += count
    if (this.at > this.length) this.fail('truncated within a field')
  }

  private skipGroup(start: number, depth: number): void {
    if (depth > GROUP_DEPTH_MAX) this.fail(`more than ${GROUP_DEPTH_MAX} nested groups`)
    for (;;) {
      const tag = this.tag()
      if (tag === start + 1) return
      this.skipValue(tag, depth)
    }
  }

  /** Throws unless the field ends at `end`. */
  finish(end: number): void {
    if (this.at !== end) this.fail('a field extends beyond its message')
  }

  /** Throws WireError with the position. */
  fail(reason: string): never {
    const at = Math.min(this.at, this.length)
    throw new WireError(`the message is not a valid ${this.message}: ${reason} (byte ${at})`)
  }
}

function hasOnlyAscii(string: string): boolean {
  for (let at = 0; at < string.length; at += 1) {
    if (string.charCodeAt(at) > 127) return false
  }
  return true
}
