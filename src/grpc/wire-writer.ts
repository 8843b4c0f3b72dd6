// Writes protobuf's wire format into one buffer that is used again and again. Knows no message; the
// lengths of nested messages are filled in when they end.

const BYTES_AT_FIRST = 4096
/** A buffer that grew beyond this is given up after its message. */
const BYTES_KEPT_MAX = 64 * 1024
/** Bytes of the longest varint. */
const VARINT_BYTES_MAX = 10
/** Longer strings are copied by the engine, shorter ones here. */
const SHORT_TEXT_MAX = 40

/** One message being written. Not to be used by two at once: it never waits. */
export class WireWriter {
  private bytes = Buffer.allocUnsafeSlow(BYTES_AT_FIRST)
  private at = 0

  /** Begins an empty message. */
  begin(): void {
    if (this.bytes.length > BYTES_KEPT_MAX) this.bytes = Buffer.allocUnsafeSlow(BYTES_AT_FIRST)
    this.at = 0
  }

  /** The message as bytes of its own. */
  end(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.at))
  }

  /** Writes a field of type varint: a whole number from 0 to 2^53 - 1; another is a defect. */
  number(tag: number, value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new RangeError(`Cannot write ${value} as a varint: it must be from 0 to 2^53 - 1`)
    }
    this.need(1 + VARINT_BYTES_MAX)
    this.bytes[this.at++] = tag
    this.varint(value)
  }

  /** Writes a field of type double. */
  double(tag: number, value: number): void {
    this.need(9)
    this.bytes[this.at++] = tag
    this.at = this.bytes.writeDoubleLE(value, this.at)
  }

  /** Writes a field of type string; what is no UTF-16 of its own becomes U+FFFD. */
  text(tag: number, text: string): void {
    if (text.length > SHORT_TEXT_MAX || !this.asciiText(tag, text)) this.longText(tag, text)
  }

  private asciiText(tag: number, text: string): boolean {
    const { length } = text
    this.need(2 + length)
    const { bytes } = this
    let at = this.at + 2
    for (let i = 0; i < length; i += 1) {
      const code = text.charCodeAt(i)
      if (code > 127) return false
      bytes[at++] = code
    }
    bytes[this.at] = tag
    bytes[this.at + 1] = length
    this.at = at
    return true
  }

  private longText(tag: number, text: string): void {
    const length = Buffer.byteLength(text)
    this.need(1 + VARINT_BYTES_MAX + length)
    this.bytes[this.at++] = tag
    this.varint(length)
    this.at += this.bytes.write(text, this.at, 'utf8')
  }

  /** Begins a nested message; what it gives is for `close`. */
  open(tag: number): number {
    this.need(2)
    this.bytes[this.at++] = tag
    return this.at++
  }

  /** Ends the nested message that `open` began. */
  close(opened: number): void {
    const begin = opened + 1
    const length = this.at - begin
    if (length < 128) {
      this.bytes[opened] = length
      return
    }
    // The length takes more than the one byte that was left for it: what it counts moves on.
    const extra = varintBytes(length) - 1
    this.need(extra)
    this.bytes.copyWithin(begin + extra, begin, this.at)
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

  /** Makes room for so many bytes more. */
  private need(count: number): void {
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
