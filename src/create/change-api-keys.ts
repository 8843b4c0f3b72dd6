// The list of API keys as an operator manages it: adds, lists and revokes keys. Pure, except that
// new keys and creator ids are random. The stored list contains only the hashes of keys.
import { hash, randomBytes } from 'node:crypto'
import {
  addLines,
  type DocumentLine,
  type ListDocument,
  linesOf,
  removeLines,
} from '../process/list-target.ts'
import { type ApiKeyLine, CREATOR_ID_MAX, parseApiKeys } from './api-keys.ts'

/** A key to add. */
export interface NewApiKey {
  readonly name: string
  readonly creatorId: bigint
  /** RFC 3339; `undefined`: never. */
  readonly expiresAt: string | undefined
  /** The key as clients send it. */
  readonly key: string
}

/** A key in the list, as `key list` prints it. */
export interface ListedApiKey {
  readonly name: string
  readonly creator_id: string
  readonly expires_at: string | null
  /** `ignored`: the service uses an earlier line with its name or its hash. */
  readonly state: 'active' | 'expired' | 'ignored'
}

const KEY_BYTES = 32

/** Generates a key. */
export function generateApiKey(): string {
  return `curtail_${randomBytes(KEY_BYTES).toString('base64url')}`
}

/**
 * Generates the id of a creator. It is random, because the list cannot show which ids were used: it
 * no longer contains those of revoked keys.
 */
export function generateCreatorId(): bigint {
  return randomBytes(8).readBigUInt64BE() & CREATOR_ID_MAX || 1n
}

/**
 * Adds a key. Returns the new contents; or `exists` if a line has its name, `full` if no document
 * has space, or `unusable` if the service would ignore the new line, because there are too many.
 */
export function addApiKey(
  documents: readonly ListDocument[],
  added: NewApiKey,
): Map<string, string> | 'exists' | 'full' | 'unusable' {
  const { name, creatorId, expiresAt, key } = added
  for (const { line } of linesOf(documents)) if (fieldsOf(line)?.name === name) return 'exists'
  const line = JSON.stringify({
    name,
    creator_id: String(creatorId),
    hash: `sha256:${hash('sha256', key)}`,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  })
  const contents = addLines(documents, [line])
  if (contents === undefined) return 'full'
  const changed = documents.map((one) => ({
    ...one,
    content: contents.get(one.name) ?? one.content,
  }))
  const { value } = parseAsService(changed)
  return value.find(key, -Infinity) === undefined ? 'unusable' : contents
}

/** A revocation. */
interface RevokedKeys {
  readonly contents: Map<string, string>
  /** The given names that occur in the list. */
  readonly found: ReadonlySet<string>
  /** The other names under which the same keys were listed. */
  readonly copies: ReadonlySet<string>
  /** The hashes of the keys. */
  readonly hashes: ReadonlySet<string>
  /** The creator IDs of the keys, by name. */
  readonly creatorIds: ReadonlyMap<string, string>
}

/**
 * Revokes keys. Removes the lines with these names, their copies (lines with the same hash under
 * another name, with which the key would still work), and the lines that are ignored because a copy
 * has their name: otherwise they would come into use. `removed`: hashes that an earlier attempt
 * removed from other documents.
 */
export function revokeApiKeys(
  documents: readonly ListDocument[],
  names: readonly string[],
  removed: Iterable<string> = [],
): RevokedKeys {
  const found = new Set<string>()
  const hashes = new Set(removed)
  for (const { line } of linesOf(documents)) {
    const { name, hash: lineHash } = fieldsOf(line) ?? {}
    if (typeof name !== 'string' || !names.includes(name)) continue
    found.add(name)
    if (typeof lineHash === 'string') hashes.add(lineHash)
  }
  const copies = new Set<string>()
  for (const { line } of linesOf(documents)) {
    const { name, hash: lineHash } = fieldsOf(line) ?? {}
    if (typeof name !== 'string' || typeof lineHash !== 'string') continue
    if (hashes.has(lineHash) && !found.has(name)) copies.add(name)
  }
  const used = usedLinesOf(documents)
  const contents = removeLines(documents, (one) => {
    const { name, hash: lineHash } = fieldsOf(one.line) ?? {}
    if (typeof lineHash === 'string' && hashes.has(lineHash)) return true
    if (typeof name !== 'string') return false
    return found.has(name) || (copies.has(name) && !used.has(placeOf(one)))
  })
  const creatorIds = creatorIdsOf(documents, new Set([...found, ...copies]))
  return { contents, found, copies, hashes, creatorIds }
}

/** The creator ID of each name: from the line in use, or else from the first line. */
function creatorIdsOf(
  documents: readonly ListDocument[],
  names: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const creatorIds = new Map<string, string>()
  parseAsService(documents, ({ members, fault }) => {
    if (members === undefined || !names.has(members.name)) return
    const { name, creator_id: creator } = members
    if (fault === undefined || !creatorIds.has(name)) creatorIds.set(name, String(creator))
  })
  return creatorIds
}

function usedLinesOf(documents: readonly ListDocument[]): ReadonlySet<string> {
  const used = new Set<string>()
  parseAsService(documents, ({ path: document, number, fault }) => {
    if (fault === undefined) used.add(placeOf({ document, number }))
  })
  return used
}

function placeOf({ document, number }: Omit<DocumentLine, 'line'>): string {
  return `${document}:${number}`
}

/** The keys of the list, and one sentence per line that the service ignores. */
export function listApiKeys(
  documents: readonly ListDocument[],
  nowMs: number,
): { readonly keys: readonly ListedApiKey[]; readonly faults: readonly string[] } {
  const keys: ListedApiKey[] = []
  const { faults } = parseAsService(documents, ({ members, fault }) => {
    if (members === undefined) return
    const { name, creator_id: creatorId, expires_at = null } = members
    const isExpired = expires_at !== null && Date.parse(expires_at) <= nowMs
    const state = isExpired ? 'expired' : 'active'
    keys.push({
      ...{ name, creator_id: String(creatorId), expires_at },
      state: fault === undefined ? state : 'ignored',
    })
  })
  return { keys, faults }
}

/** Parses the documents in the order in which the service reads them: sorted by file name. */
function parseAsService(documents: readonly ListDocument[], onLine?: (line: ApiKeyLine) => void) {
  // The Secrets `a` and `a-b` are mounted as `a.ndjson` and `a-b.ndjson`, and `a-b.` sorts first.
  const sortKeyOf = ({ name }: ListDocument) => `${name}.`
  const files = documents
    .toSorted((one, other) => (sortKeyOf(one) < sortKeyOf(other) ? -1 : 1))
    .map(({ name: path, content }) => ({ path, content }))
  return parseApiKeys(files, onLine)
}

/** The members of a line. In an invalid line they can have any type. */
function fieldsOf(line: string): { readonly name?: unknown; readonly hash?: unknown } | undefined {
  try {
    return (JSON.parse(line) ?? undefined) as { name?: unknown; hash?: unknown } | undefined
  } catch {
    return undefined // a comment or a faulty line
  }
}
