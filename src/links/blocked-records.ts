// The records of a table of blocked targets. A record consists of flags (1 byte), the length (2
// bytes), the position of the host's record (4 bytes; only in records of prefixes), and the
// characters of the host or of the prefix. All characters are ASCII.

/** Flag of a record: the host and its subdomains are blocked. */
export const BLOCKED = 1
/** Flag of a record: prefixes of URLs on exactly this host are blocked. */
export const HAS_PREFIXES = 2
/** Flag of a record: a prefix, not a host. */
const PREFIX = 4

const LENGTH_AT = 1
const HOST_AT = 3
const HOST_BYTES = 4

/** Reads records by their positions. */
export interface RecordReader {
  isPrefix(record: number): boolean
  lengthOf(record: number): number
  /** The record of the host of a prefix. */
  hostOf(record: number): number
  characterAt(record: number, i: number): number
  /** Whether `text` contains the characters of a record at `start`. */
  isAt(record: number, text: string, start: number): boolean
}

/** Creates a reader of these bytes. */
export function createRecordReader(bytes: Uint8Array): RecordReader {
  const isPrefix = (record: number) => ((bytes[record] ?? 0) & PREFIX) !== 0
  const lengthOf = (record: number) =>
    (bytes[record + LENGTH_AT] ?? 0) | ((bytes[record + LENGTH_AT + 1] ?? 0) << 8)
  const charactersOf = (record: number) => record + HOST_AT + (isPrefix(record) ? HOST_BYTES : 0)
  return {
    isPrefix,
    lengthOf,
    hostOf(record) {
      let position = 0
      for (let i = HOST_BYTES - 1; i >= 0; i--) {
        position = position * 256 + (bytes[record + HOST_AT + i] ?? 0)
      }
      return position
    },
    characterAt: (record, i) => bytes[charactersOf(record) + i] ?? 0,
    isAt(record, text, start) {
      const from = charactersOf(record)
      const length = lengthOf(record)
      for (let i = 0; i < length; i++) {
        if (bytes[from + i] !== text.charCodeAt(start + i)) return false
      }
      return true
    },
  }
}

/** The bytes of a record; only for a prefix, `host` is the position of its host's record. */
export function recordOf(characters: string, host?: number): Uint8Array {
  const { length } = characters
  const start = HOST_AT + (host === undefined ? 0 : HOST_BYTES)
  const record = new Uint8Array(start + length)
  record.set([host === undefined ? 0 : PREFIX, length & 0xff, length >>> 8])
  for (let i = HOST_AT; i < start; i++) record[i] = (host ?? 0) >>> (8 * (i - HOST_AT))
  for (let i = 0; i < length; i++) record[start + i] = characters.charCodeAt(i)
  return record
}
