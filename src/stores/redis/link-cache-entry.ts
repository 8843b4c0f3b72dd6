// How the shared cache of links writes what it remembers under a code's key: a version, a kind, and
// what belongs to it. What it cannot read is never believed.
import type { CacheAnswer } from '../../links/link-cache.ts'
import type { Target } from '../../links/decide-redirect.ts'
import { TARGET_LENGTH_MAX } from '../../links/target-url.ts'

/**
 * Before each code. Its number changes only together with every writer that must forget: a writer
 * that forgets other keys than readers look at would leave them what is no more.
 */
const KEY_PREFIX = 'curtail:link:1:'

/** Changes with the form of values. */
const VERSION = '1'
const NEGATIVE = `${VERSION}N`
const PERMIT = `${VERSION}P`
const TARGET = `${VERSION}T`

/** A value that is no entry of ours. */
export interface Unreadable {
  readonly kind: 'unreadable'
}

/** Where a code's entry is. */
export function keyOf(code: string): string {
  return KEY_PREFIX + code
}

/** `T`, the end of its life in ms since 1970 or nothing, a space, its target; or `N`. */
export function encodeEntry(target: Target | undefined): string {
  if (target === undefined) return NEGATIVE
  return `${TARGET}${target.expiresAtMs ?? ''} ${target.longUrl}`
}

/** The value that stands for a permit until it is used. */
export function encodePermit(permit: string): string {
  return PERMIT + permit
}

const negative: CacheAnswer = { kind: 'negative' }
const awaited: CacheAnswer = { kind: 'unknown', permit: undefined }
const unreadable: Unreadable = { kind: 'unreadable' }

/** What a value says. */
export function decodeEntry(value: string): CacheAnswer | Unreadable {
  if (value.startsWith(TARGET)) return decodeTarget(value)
  if (value === NEGATIVE) return negative
  return value.startsWith(PERMIT) ? awaited : unreadable
}

/** A redirect goes where this says, so it is looked at as what comes from outside. */
const followable = /^https?:\/\/[!-~]+$/i

function decodeTarget(value: string): CacheAnswer | Unreadable {
  const space = value.indexOf(' ')
  const longUrl = value.slice(space + 1)
  if (space < 0 || longUrl.length > TARGET_LENGTH_MAX || !followable.test(longUrl)) {
    return unreadable
  }
  const end = value.slice(TARGET.length, space)
  if (end === '') return { kind: 'hit', target: { longUrl, expiresAtMs: null } }
  if (!/^\d{1,15}$/.test(end)) return unreadable
  return { kind: 'hit', target: { longUrl, expiresAtMs: Number(end) } }
}
