// The values of the shared link cache. An entry contains its code, its length and a checksum, which
// every read verifies, because a redirect goes to the entry's target.
import { crc32 } from 'node:zlib'
import type { CacheResult } from '../../links/link-cache.ts'
import type { Target } from '../../links/decide-redirect.ts'
import { TARGET_LENGTH_MAX } from '../../links/target-url.ts'

/**
 * The key prefix, in which the 1 never changes: in a rolling upgrade, old and new pods share one
 * Redis, and a pod that invalidates keys with another prefix would leave a disabled target in the
 * cache. Therefore the version of the format is in the value.
 */
const KEY_PREFIX = 'curtail:link:1:'

/** Changes with the format of entries. A pod of another version drops the entry: a miss. */
const VERSION = '2'
const NEGATIVE = 'N'
const TARGET = 'T'
/** A lease has the same format in all versions, so old and new pods respect each other's. */
const LEASE = '1P'
/** An entry of version 1, which had no checksum. */
const OUTDATED = /^1[TN]/

/** Why an entry is not used; `version`: an older release wrote it, which is expected. */
export type InvalidReason = 'version' | 'format' | 'length' | 'checksum' | 'code'

/** A value that is not a valid entry of the code. */
export interface InvalidEntry {
  readonly kind: 'invalid'
  readonly reason: InvalidReason
}

/** The key of a code's entry. */
export function keyOf(code: string): string {
  return KEY_PREFIX + code
}

/**
 * An entry, such as `2N0a1b2c3d 4 code`: version, kind, and checksum of kind and rest; the length
 * of the rest; and the rest: the code and, for a target, its expiry in ms since the Unix epoch
 * (empty: none) and its URL, separated by spaces.
 */
export function encodeEntry(code: string, target: Target | undefined): string {
  if (target === undefined) return withChecksum(NEGATIVE, code)
  return withChecksum(TARGET, `${code} ${target.expiresAtMs ?? ''} ${target.longUrl}`)
}

/** The value of a key that is leased: its reader may fill it. */
export function encodeLease(token: string): string {
  return LEASE + token
}

function withChecksum(kind: string, rest: string): string {
  return `${VERSION}${kind}${checksumOf(kind, rest)} ${rest.length} ${rest}`
}

/** Eight hexadecimal digits. */
function checksumOf(kind: string, rest: string): string {
  return crc32(kind + rest)
    .toString(16)
    .padStart(8, '0')
}

const negative: CacheResult = { kind: 'negative' }
const leased: CacheResult = { kind: 'unknown', lease: undefined }

/** Decodes the value at the key of `code`, one character per byte. */
export function decodeEntry(code: string, value: string): CacheResult | InvalidEntry {
  if (value.startsWith(LEASE)) return leased
  const content = verify(value)
  if (typeof content === 'string') return { kind: 'invalid', reason: content }
  const { kind, rest } = content
  if (kind === NEGATIVE) return rest === code ? negative : { kind: 'invalid', reason: 'code' }
  if (!rest.startsWith(`${code} `)) return { kind: 'invalid', reason: 'code' }
  return decodeTarget(rest.slice(code.length + 1)) ?? { kind: 'invalid', reason: 'format' }
}

const format = /^2([TN])([0-9a-f]{8}) (\d{1,5}) /

/** An entry's kind and rest, or the reason why it is invalid. */
function verify(value: string): { kind: string; rest: string } | InvalidReason {
  const [header, kind = '', checksum = '', length = ''] = format.exec(value) ?? []
  if (header === undefined) return OUTDATED.test(value) ? 'version' : 'format'
  const rest = value.slice(header.length)
  if (rest.length !== Number(length)) return 'length'
  return checksumOf(kind, rest) === checksum ? { kind, rest } : 'checksum'
}

/** A checksum does not authenticate the writer, so the URL is validated like other input. */
const redirectable = /^https?:\/\/[!-~]+$/i

function decodeTarget(value: string): CacheResult | undefined {
  const space = value.indexOf(' ')
  const longUrl = value.slice(space + 1)
  if (space < 0 || longUrl.length > TARGET_LENGTH_MAX || !redirectable.test(longUrl)) return
  const expiry = value.slice(0, space)
  if (expiry === '') return { kind: 'hit', target: { longUrl, expiresAtMs: null } }
  if (!/^\d{1,15}$/.test(expiry)) return
  return { kind: 'hit', target: { longUrl, expiresAtMs: Number(expiry) } }
}
