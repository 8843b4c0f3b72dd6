// Encodes a status message for `grpc-message`: UTF-8, with all bytes percent-encoded except spaces
// and visible ASCII other than `%`. Pure.

/** An encoded message is truncated as soon as it exceeds this many bytes. */
const BYTES_MAX = 8000

/** Encodes a message; a lone surrogate becomes U+FFFD. */
export function encodeStatusMessage(details: string): string {
  let rendered = ''
  for (const byte of Buffer.from(details.toWellFormed())) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25
    rendered += isPlain
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    if (rendered.length > BYTES_MAX) break
  }
  return rendered
}
