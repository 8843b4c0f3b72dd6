// Huffman's code of HPACK (RFC 7541, appendix B), for reading. The code is canonical, so lengths
// say it whole. Writes nothing: what this service sends is short.

/** Bits of the code of each byte from 0 to 255, in base 36. A string’s end, 30, is left out. */
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

/** By length: the first code, how many codes there are, and where what they mean stands. */
const firstCodes = new Int32Array(BITS_MAX + 1)
const counts = new Int32Array(BITS_MAX + 1)
const places = new Int32Array(BITS_MAX + 1)
/** All bytes in the order of their codes. */
const meanings = new Uint8Array(LENGTHS.length)
arrangeCodes()

function arrangeCodes(): void {
  let code = 0
  let place = 0
  for (let bits = 1; bits <= BITS_MAX; bits += 1) {
    code *= 2
    firstCodes[bits] = code
    places[bits] = place
    for (let byte = 0; byte < LENGTHS.length; byte += 1) {
      if (parseInt(LENGTHS.charAt(byte), 36) === bits) meanings[place++] = byte
    }
    const count = place - (places[bits] ?? 0)
    counts[bits] = count
    code += count
  }
}

/** The text, a character for each byte, that these bytes mean; undefined if they mean none. */
export function readHuffman(bytes: Buffer, begin: number, end: number): string | undefined {
  const read = Buffer.allocUnsafe(Math.ceil(((end - begin) * 8) / 5))
  let length = 0
  let code = 0
  let bits = 0
  for (let at = begin; at < end; at += 1) {
    const byte = bytes[at] ?? 0
    for (let shift = 7; shift >= 0; shift -= 1) {
      code = code * 2 + ((byte >> shift) & 1)
      bits += 1
      if (bits > BITS_MAX) return undefined
      const place = code - (firstCodes[bits] ?? 0)
      if (place >= (counts[bits] ?? 0)) continue
      read[length++] = meanings[(places[bits] ?? 0) + place] ?? 0
      code = 0
      bits = 0
    }
  }
  // What is left over is the beginning of the end of a string: at most seven ones.
  if (bits > 7 || code !== 2 ** bits - 1) return undefined
  return read.toString('latin1', 0, length)
}
