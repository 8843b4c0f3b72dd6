// The values of the shared link cache. An entry carries its code, its length and a checksum, and is
// verified on every read: a redirect goes where it says.
import { crc32 } from 'node:zlib'
import type { CacheAnswer } from '../../links/link-cache.ts'
import type { Target } from '../../links/decide-redirect.ts'
import { TARGET_LENGTH_MAX } from '../../links/target-url.ts'

/**
 * The key prefix. It changes only together with every writer that invalidates: during a rolling
 * upgrade old and new pods share one Redis, and a pod that deletes other keys than the others read
 * would leave them a target that was disabled. The version is therefore part of the value.
 */
const KEY_PREFIX = 'curtail:link:1:'

/** Changes with the form of entries. A pod of another version drops the entry: a miss. */
const VERSION = '2'
const NEGATIVE = 'N'
const TARGET = 'T'
/** A lease has the same form in all versions, so old and new pods respect each other's. */
const PERMIT = '1P'
/** An entry of version 1, which had no checksum, or the negative entry of it. */
const OUTDATED = /^1[TN]/

/** Why an entry is not used; `version`: it is that of an older release, and nothing is wrong. */
export type InvalidReason = 'version' | 'format' | 'length' | 'checksum' | 'code'

/** A value that is no entry of this code. */
export interface InvalidEntry {
  readonly kind: 'invalid'
  readonly reason: InvalidReason
}

/** The key of a code's entry. */
export function keyOf(code: string): string {
  return KEY_PREFIX + code
}

/**
 * Version, kind, checksum of kind and rest, length of the rest, and the rest: the code, and for a
 * target its expiry in ms since 1970 or nothing, and the URL. Separated by spaces.
 */
export function encodeEntry(code: string, target: Target | undefined): string {
  if (target === undefined) return sealed(NEGATIVE, code)
  return sealed(TARGET, `${code} ${target.expiresAtMs ?? ''} ${target.longUrl}`)
}

/** The value that stands for a lease until it is used. */
export function encodePermit(permit: string): string {
  return PERMIT + permit
}

function sealed(kind: string, rest: string): string {
  return `${VERSION}${kind}${checksumOf(kind, rest)} ${rest.length} ${rest}`
}

/** Eight hexadecimal digits. */
function checksumOf(kind: string, rest: string): string {
  return crc32(kind + rest)
    .toString(16)
    .padStart(8, '0')
}

const negative: CacheAnswer = { kind: 'negative' }
const leased: CacheAnswer = { kind: 'unknown', permit: undefined }

/** Reads the value found at the key of `code`, one byte per character. */
export function decodeEntry(code: string, value: string): CacheAnswer | InvalidEntry {
  if (value.startsWith(PERMIT)) return leased
  const parts = unsealed(value)
  if (typeof parts === 'string') return { kind: 'invalid', reason: parts }
  const { kind, rest } = parts
  if (kind === NEGATIVE) return rest === code ? negative : { kind: 'invalid', reason: 'code' }
  if (!rest.startsWith(`${code} `)) return { kind: 'invalid', reason: 'code' }
  return decodeTarget(rest.slice(code.length + 1)) ?? { kind: 'invalid', reason: 'format' }
}

const form = /^2([TN])([0-9a-f]{8}) (\d{1,5}) /

/** An entry's kind and rest, as they were written; or the reason why they are not. */
function unsealed(value: string): { kind: string; rest: string } | InvalidReason {
  const [head, kind = '', checksum = '', length = ''] = form.exec(value) ?? []
  if (head === undefined) return OUTDATED.test(value) ? 'version' : 'format'
  const rest = value.slice(head.length)
  if (rest.length !== Number(length)) return 'length'
  return checksumOf(kind, rest) === checksum ? { kind, rest } : 'checksum'
}

/** A checksum does not prove who wrote it: a URL is looked at like all that comes from outside. */
const redirectable = /^https?:\/\/[!-~]+$/i

function decodeTarget(text: string): CacheAnswer | undefined {
  const space = text.indexOf(' ')
  const longUrl = text.slice(space + 1)
  if (space < 0 || longUrl.length > TARGET_LENGTH_MAX || !redirectable.test(longUrl)) return
  const expiry = text.slice(0, space)
  if (expiry === '') return { kind: 'hit', target: { longUrl, expiresAtMs: null } }
  if (!/^\d{1,15}$/.test(expiry)) return
  return { kind: 'hit', target: { longUrl, expiresAtMs: Number(expiry) } }
}
