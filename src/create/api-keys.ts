// API keys: parses the files of keys, and finds the key of a request. The files contain only hashes
// of keys. The message of a faulty line never quotes the line, a hash or a key.
import { hash } from 'node:crypto'
import * as z from 'zod'
import { linesOf } from '../process/list-lines.ts'
import type { ListFile, LoadedList } from '../process/watched-list.ts'

/** A key of a client. */
export interface ApiKey {
  /** Unique among the keys. */
  readonly name: string
  /** The creator of the links that are created with the key; from 1 to 2^63 - 1. */
  readonly creatorId: bigint
}

/** The keys in use. */
export interface ApiKeys {
  /** The key in a header value; `undefined` if the key is unknown or has expired. */
  find(header: unknown, nowMs: number): ApiKey | undefined
}

interface StoredKey extends ApiKey {
  /** `Infinity`: it never expires. */
  readonly expiresAtMs: number
}

/** Maximum number of lines that are read; comments and empty lines do not count. */
const LINES_MAX = 100_000
/** Maximum number of lines per slice: a slice takes a few milliseconds. */
const SLICE_LINES = 500
const LINE_LENGTH_MAX = 1024
/** The largest id of a creator. */
export const CREATOR_ID_MAX = 2n ** 63n - 1n
/** Matches the valid names of keys. */
export const API_KEY_NAME_PATTERN = /^[a-z\d]([a-z\d-]{0,61}[a-z\d])?$/
const HASH_PREFIX = 'sha256:'

const linesLimit = `at most ${LINES_MAX} lines are read, comments not counted`

const keyShape = /^curtail_[\w-]{43}$/

const lineRule =
  'a line must be a JSON object with the members name, creator_id, hash and, optionally, expires_at'
const nameRule =
  'name must be 1 to 63 of the characters a-z, 0-9 and -, and must not start or end with -'
const creatorRule = `creator_id must be an integer from 1 to ${CREATOR_ID_MAX} as a string`
const hashRule =
  'hash must be sha256: followed by the SHA-256 hash of a key in 64 lower-case hexadecimal digits'
const expiryRule = 'expires_at must be a time such as 2027-01-31T12:00:00Z'

const lineSchema = z.strictObject(
  {
    name: z.string({ error: nameRule }).regex(API_KEY_NAME_PATTERN, { error: nameRule }),
    creator_id: z
      .string({ error: creatorRule })
      .regex(/^[1-9]\d{0,18}$/, { error: creatorRule, abort: true })
      .transform(BigInt)
      .refine((id) => id <= CREATOR_ID_MAX, { error: creatorRule }),
    hash: z.string({ error: hashRule }).regex(/^sha256:[\da-f]{64}$/, { error: hashRule }),
    expires_at: z.iso.datetime({ offset: true, error: expiryRule }).optional(),
  },
  { error: lineRule },
)

type KeyMembers = Readonly<z.output<typeof lineSchema>>

/** A line of a file that is neither empty nor a comment. */
export interface ApiKeyLine {
  readonly path: string
  readonly number: number
  /** Its members; `undefined` if they are invalid. */
  readonly members: KeyMembers | undefined
  /** Why the line is not used: it is invalid, or an earlier line has its name or hash. */
  readonly fault: string | undefined
}

/** No keys. */
export const noApiKeys: ApiKeys = { find: () => undefined }

/** Parses files of keys, and calls `onLine` with each line; 10,000 keys take 50 ms. */
export function parseApiKeys(
  files: readonly ListFile[],
  onLine?: (line: ApiKeyLine) => void,
): LoadedList<ApiKeys> {
  const slices = parseApiKeySlices(files, onLine)
  let slice = slices.next()
  while (slice.done !== true) slice = slices.next()
  return slice.value
}

/**
 * Parses in slices, so that the caller can do other work between them. A file has one JSON object
 * per line; empty lines and lines that start with `#` are ignored. A line with the name or the hash
 * of an earlier line is a fault.
 */
export function* parseApiKeySlices(
  files: readonly ListFile[],
  onLine?: (line: ApiKeyLine) => void,
): Generator<undefined, LoadedList<ApiKeys>> {
  const keys = new Map<string, StoredKey>()
  const names = new Set<string>()
  const faults: string[] = []
  let lineCount = 0
  for (const { path, content } of files) {
    for (const { line, number } of linesOf(content)) {
      if (++lineCount % SLICE_LINES === 0) yield
      if (line === '' || line.startsWith('#')) continue
      if (keys.size + faults.length >= LINES_MAX) {
        faults.push(`${path}:${number}: ${linesLimit}: the rest is ignored`)
        return { value: createApiKeys(keys), entries: keys.size, faults }
      }
      const parsed = parseLine(line)
      const fault = typeof parsed === 'string' ? parsed : duplicateFault(parsed, keys, names)
      const members = typeof parsed === 'string' ? undefined : parsed.members
      onLine?.({ path, number, members, fault })
      if (typeof parsed === 'string' || fault !== undefined) {
        faults.push(`${path}:${number}: ${fault}`)
        continue
      }
      names.add(parsed.key.name)
      keys.set(parsed.hash, parsed.key)
    }
  }
  return { value: createApiKeys(keys), entries: keys.size, faults }
}

function createApiKeys(keys: ReadonlyMap<string, StoredKey>): ApiKeys {
  return {
    find(header, nowMs) {
      if (typeof header !== 'string' || !keyShape.test(header)) return undefined
      const key = keys.get(HASH_PREFIX + hash('sha256', header))
      return key !== undefined && nowMs < key.expiresAtMs ? key : undefined
    },
  }
}

interface ParsedLine {
  readonly hash: string
  readonly key: StoredKey
  readonly members: KeyMembers
}

/** The key of a line and its hash, or why the line is invalid. */
function parseLine(line: string): ParsedLine | string {
  if (line.length > LINE_LENGTH_MAX) return `a line must have at most ${LINE_LENGTH_MAX} characters`
  const parsed = lineSchema.safeParse(parseJson(line))
  if (!parsed.success) return parsed.error.issues[0]?.message ?? lineRule
  const { name, creator_id: creatorId, hash, expires_at: expiresAt } = parsed.data
  const expiresAtMs = expiresAt === undefined ? Infinity : Date.parse(expiresAt)
  const key = { name, creatorId, expiresAtMs }
  return { hash, key, members: parsed.data }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined // not reported: its message quotes the line, which may contain a key
  }
}

function duplicateFault(
  { hash, key }: ParsedLine,
  keys: ReadonlyMap<string, StoredKey>,
  names: ReadonlySet<string>,
): string | undefined {
  if (names.has(key.name)) return 'name must be unique: an earlier line has the same name'
  if (keys.has(hash)) return 'hash must be unique: an earlier line has the same hash'
  return undefined
}
