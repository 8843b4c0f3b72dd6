// Decodes HPACK's Huffman code (RFC 7541, appendix B). The code is canonical, so its lengths define
// it. There is no encoder, because this service sends only short fields.

/** Code length in bits for each byte from 0 to 255, in base 36. EOS, with 30 bits, is omitted. */
const LENGTHS = [
  'dnsssssssoussussssssssusssssssss',
  '6aacd68baa8b8666555666666678f6ca',
  'd67777777777777777777777878djde6',
  'f56565666577666567655677777fbeds',
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnno',
  'mlkmmnnlnmmolmnnllmlnmnnkmmmnmmn',
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrr',
  'koklmllnmmppooqnqrqqrrrrrsrrrrrq',
].join('')
const BITS_MAX = 30

/** By length: the first code, the number of codes, and the offset of their symbols. */
const firstCodes = new Int32Array(BITS_MAX + 1)
const counts = new Int32Array(BITS_MAX + 1)
const offsets = new Int32Array(BITS_MAX + 1)
/** All bytes in order of their codes. */
const symbols = new Uint8Array(LENGTHS.length)
buildTables()

function buildTables(): void {
  let code = 0
  let index = 0
  for (let bits = 1; bits <= BITS_MAX; bits += 1) {
    code *= 2
    firstCodes[bits] = code
    offsets[bits] = index
    for (let byte = 0; byte < LENGTHS.length; byte += 1) {
      if (parseInt(LENGTHS.charAt(byte), 36) === bits) symbols[index++] = byte
    }
    const count = index - (offsets[bits] ?? 0)
    counts[bits] = count
    code += count
  }
}

/** The decoded string, one character per byte; `undefined` if the encoding is invalid. */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string | undefined {
  const read = Buffer.allocUnsafe(Math.ceil(((end - start) * 8) / 5))
  let length = 0
  let code = 0
  let bits = 0
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0
    for (let shift = 7; shift >= 0; shift -= 1) {
      code = code * 2 + ((byte >> shift) & 1)
      bits += 1
      if (bits > BITS_MAX) return undefined
      const index = code - (firstCodes[bits] ?? 0)
      if (index >= (counts[bits] ?? 0)) continue
      read[length++] = symbols[(offsets[bits] ?? 0) + index] ?? 0
      code = 0
      bits = 0
    }
  }
  // The padding is a prefix of EOS: at most seven 1 bits.
  if (bits > 7 || code !== 2 ** bits - 1) return undefined
  return read.toString('latin1', 0, length)
}
