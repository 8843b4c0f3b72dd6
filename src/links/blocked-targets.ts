// Whether a target is blocked. A host entry blocks this host and every subdomain, on any port; case
// and trailing dots are ignored, and internationalized names are compared in Punycode. IP addresses
// are compared as the WHATWG URL parser normalises them, and have no subdomains. A prefix entry
// blocks the URLs on exactly this host, on any port, whose path, with the query, starts with the
// prefix, both in the form of normal-target.ts.
import { BLOCKED, HAS_PREFIXES } from './blocked-records.ts'
import { type BlockedTable, createTableProbe, hashOfHost, nextHash } from './blocked-table.ts'
import { type NormalTarget, normalTargetOf } from './normal-target.ts'

/** A list of blocked targets. */
export interface BlockedTargets {
  /** Whether a target, as stored, is blocked. */
  readonly has: (longUrl: string) => boolean
}

const COLON = 58
const DOT = 46
const ZERO = 48
const NINE = 57
/** The characters of a host that is in normal form. */
const isHostCharacter = classOf('abcdefghijklmnopqrstuvwxyz0123456789-_.')
/** The characters that end an authority. */
const isDelimiter = classOf('/?#')

function classOf(characters: string): Uint8Array {
  const members = new Uint8Array(128)
  for (const character of characters) members[character.charCodeAt(0)] = 1
  return members
}

/** Creates the list whose entries are in this table. */
export function createBlockedTargets(table: BlockedTable): BlockedTargets {
  const { bytes, seed } = table
  const probe = createTableProbe(table)
  /** The flags of the host from `start` to `end`; BLOCKED if a parent domain is blocked. */
  const hostFlags = (text: string, start: number, end: number): number => {
    let hash = seed
    for (let i = end - 1; i >= start; i--) {
      const character = text.charCodeAt(i)
      if (character === DOT) {
        probe.start(hash)
        const parent = probe.findHost(text, i + 1, end)
        if (parent >= 0 && ((bytes[parent] ?? 0) & BLOCKED) !== 0) return BLOCKED
      }
      hash = nextHash(hash, character)
    }
    probe.start(hash)
    const record = probe.findHost(text, start, end)
    return record < 0 ? 0 : (bytes[record] ?? 0)
  }
  /** Whether a target on a host with the flag HAS_PREFIXES starts with a blocked prefix. */
  const hasPrefix = ({ host, path }: NormalTarget): boolean => {
    let hash = hashOfHost(host, seed)
    probe.start(hash)
    const hostRecord = probe.findHost(host, 0, host.length)
    for (let i = 0; i < path.length; i++) {
      hash = nextHash(hash, path.charCodeAt(i))
      probe.start(hash)
      if (probe.findPrefix(hostRecord, path, i + 1) >= 0) return true
    }
    return false
  }
  return {
    has(longUrl) {
      const start = longUrl.startsWith('https://') ? 8 : 7
      const end = normalHostEnd(longUrl, start)
      if (end > start) {
        const flags = hostFlags(longUrl, start, end)
        if ((flags & BLOCKED) !== 0) return true
        if ((flags & HAS_PREFIXES) === 0) return false
      }
      const target = normalTargetOf(longUrl)
      if (target === undefined) return false // not a URL: browsers cannot open it
      const flags = hostFlags(target.host, 0, target.host.length)
      if ((flags & BLOCKED) !== 0) return true
      return (flags & HAS_PREFIXES) !== 0 && hasPrefix(target)
    },
  }
}

/**
 * The end of the host that starts at `start`, if it is certainly in normal form; else -1: then the
 * parser is needed, which takes longer.
 */
function normalHostEnd(longUrl: string, start: number): number {
  if (start === 7 && !longUrl.startsWith('http://')) return -1
  let end = start
  let labelStart = start
  for (; end < longUrl.length; end++) {
    const character = longUrl.charCodeAt(end)
    if (isHostCharacter[character] !== 1) break
    if (character === DOT) labelStart = end + 1
  }
  if (labelStart === end) return -1 // empty, or a trailing dot
  // The parser reads a host whose last label is a number as an IPv4 address.
  const first = longUrl.charCodeAt(labelStart)
  if (first >= ZERO && first <= NINE) return -1
  return isAuthorityEnd(longUrl, end) ? end : -1
}

/** Whether the authority ends at `at`, or after a port. */
function isAuthorityEnd(longUrl: string, at: number): boolean {
  let end = at
  if (longUrl.charCodeAt(end) === COLON) {
    end++
    while (longUrl.charCodeAt(end) >= ZERO && longUrl.charCodeAt(end) <= NINE) end++
  }
  return end === longUrl.length || isDelimiter[longUrl.charCodeAt(end)] === 1
}
