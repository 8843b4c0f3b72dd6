// The sentence of a fault as it stands in `grpc-message`: UTF-8, percent-encoded but for visible
// ASCII and spaces. Touches nothing.

/** Bytes of the longest that is sent; the rest is cut. */
const BYTES_MAX = 8000

/** Renders it; half a character becomes U+FFFD. */
export function renderDetails(details: string): string {
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
