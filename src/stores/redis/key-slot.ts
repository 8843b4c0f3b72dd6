// The hash slot of a key on Redis Cluster, as its specification defines it: CRC16 (XMODEM) of the
// key, or of its hash tag: the substring between the first `{` and the next `}`.
const SLOTS = 16_384

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
  return crc
})

/** The slot of a key, from 0 to 16,383. */
export function keySlot(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(hashTagOf(key))) {
    crc = ((crc << 8) ^ (table[(crc >> 8) ^ byte] ?? 0)) & 0xffff
  }
  return crc % SLOTS
}

function hashTagOf(key: string): string {
  const open = key.indexOf('{')
  const close = key.indexOf('}', open + 1)
  return open === -1 || close === -1 || close === open + 1 ? key : key.slice(open + 1, close)
}
