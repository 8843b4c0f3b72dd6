// What an import derives from a row: the id of its write, and codes that replace one that is not
// allowed. Both depend only on the row, so that a retried import returns the same links. Their
// derivation must never change: an import that an earlier release started must continue.
import { createHash } from 'node:crypto'
import { isOffensive } from '../codes/offensive.ts'
import { aliasFault } from '../links/alias.ts'

/** The fields of a row that identify it. */
export interface RowIdentity {
  readonly shortCode: string
  readonly longUrl: string | null
  readonly createdAt: string | null
  readonly expiresAt: string | null
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Generated codes have 7 characters, so a replacement never equals one. */
const REPLACED_LENGTH = 8
const CANDIDATES_MAX = 10

/** The `writerId` of a row: a UUID (RFC 9562, version 8) of its hash. */
export function writerIdOf(row: RowIdentity): string {
  const { shortCode, longUrl, createdAt, expiresAt } = row
  const bytes = sha256(JSON.stringify([shortCode, longUrl, createdAt, expiresAt])).subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** The codes to try, in order: the row's own if it is allowed, or those that replace it. */
export function candidatesOf({ shortCode, longUrl }: RowIdentity): readonly string[] {
  if (aliasFault(shortCode) === undefined) return [shortCode]
  return Array.from({ length: CANDIDATES_MAX }, (_, i) => {
    const hash = sha256(JSON.stringify([shortCode, longUrl, i]))
    let rest = hash.readBigUInt64BE()
    let code = ''
    for (let digit = 0; digit < REPLACED_LENGTH; digit++) {
      code += DIGITS[Number(rest % 62n)] ?? ''
      rest /= 62n
    }
    return code
  }).filter((code) => aliasFault(code) === undefined && !isOffensive(code))
}

function sha256(input: string): Buffer {
  return createHash('sha256').update(input).digest()
}
