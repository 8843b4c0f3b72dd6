// Writes protobuf's wire format into a reused buffer; independent of the messages. The length of a
// nested message is written when it is closed.

const INITIAL_BYTES = 4096
/** A larger buffer is released when the next message starts. */
const BYTES_KEPT_MAX = 64 * 1024
/** Bytes of the longest varint. */
const VARINT_BYTES_MAX = 10
/** Up to this length, a copy in JavaScript is faster than a call into the engine. */
const SHORT_STRING_MAX = 40

/** Writes one message at a time; tags must fit into one byte (field numbers up to 15). */
export class WireWriter {
  private bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  private at = 0

  /** Starts a message. */
  start(): void {
    if (this.bytes.length > BYTES_KEPT_MAX) this.bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
    this.at = 0
  }

  /** Returns a copy of the message. */
  finish(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.at))
  }

  /** Writes a varint field: an integer from 0 to 2^53 - 1. Throws RangeError for other values. */
  number(tag: number, value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new RangeError(`Cannot write ${value} as a varint: it must be from 0 to 2^53 - 1`)
    }
    this.reserve(1 + VARINT_BYTES_MAX)
    this.bytes[this.at++] = tag
    this.varint(value)
  }

  /** Writes a double field. */
  double(tag: number, value: number): void {
    this.reserve(9)
    this.bytes[this.at++] = tag
    this.at = this.bytes.writeDoubleLE(value, this.at)
  }

  /** Writes a string field; a lone surrogate becomes U+FFFD. */
  string(tag: number, value: string): void {
    if (value.length > SHORT_STRING_MAX || !this.asciiString(tag, value))
      this.longString(tag, value)
  }

  private asciiString(tag: number, value: string): boolean {
    const { length } = value
    this.reserve(2 + length)
    const { bytes } = this
    let at = this.at + 2
    for (let i = 0; i < length; i += 1) {
      const code = value.charCodeAt(i)
      if (code > 127) return false
      bytes[at++] = code
    }
    bytes[this.at] = tag
    bytes[this.at + 1] = length
    this.at = at
    return true
  }

  private longString(tag: number, value: string): void {
    const length = Buffer.byteLength(value)
    this.reserve(1 + VARINT_BYTES_MAX + length)
    this.bytes[this.at++] = tag
    this.varint(length)
    this.at += this.bytes.write(value, this.at, 'utf8')
  }

  /** Writes a field of bytes, such as a serialized message. */
  delimited(tag: number, value: Uint8Array): void {
    const { length } = value
    this.reserve(1 + VARINT_BYTES_MAX + length)
    this.bytes[this.at++] = tag
    this.varint(length)
    this.bytes.set(value, this.at)
    this.at += length
  }

  /** Opens a nested message; returns its position for `close`. */
  open(tag: number): number {
    this.reserve(2)
    this.bytes[this.at++] = tag
    return this.at++
  }

  /** Closes a nested message. */
  close(opened: number): void {
    const start = opened + 1
    const length = this.at - start
    if (length < 128) {
      this.bytes[opened] = length
      return
    }
    // The length takes more than the one reserved byte, so the content is moved.
    const extra = varintBytes(length) - 1
    this.reserve(extra)
    this.bytes.copyWithin(start + extra, start, this.at)
    const end = this.at + extra
    this.at = opened
    this.varint(length)
    this.at = end
  }

  private varint(value: number): void {
    const { bytes } = this
    let { at } = this
    let rest = value
    for (; rest >= 2 ** 31; rest = Math.floor(rest / 128)) bytes[at++] = (rest % 128) | 128
    for (; rest > 127; rest >>>= 7) bytes[at++] = (rest & 127) | 128
    bytes[at++] = rest
    this.at = at
  }

  /** Reserves `count` more bytes. */
  private reserve(count: number): void {
    const length = this.at + count
    if (length <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.bytes.length))
    this.bytes.copy(larger, 0, 0, this.at)
    this.bytes = larger
  }
}

function varintBytes(value: number): number {
  let count = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) count += 1
  return count
}
