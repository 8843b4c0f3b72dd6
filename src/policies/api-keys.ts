// API keys of RateLimitPolicies: hashes the values of Secrets, or reads the hashes in their lists
// of API keys, and selects those that a policy references. Pure; only hashes leave this file, and
// no message contains a value.
import { hash } from 'node:crypto'
import type { ApiKeys, ApiKeySecret, PolicyEntry } from './policy.ts'

/** The label that a Secret must have, with the value `true`, so that its values are API keys. */
export const API_KEYS_LABEL = 'curtail.dev/api-keys'

/** Maximum number of values of a Secret; the rest is ignored. */
const VALUES_MAX = 1000
/** A data key with this suffix contains a list of API keys, as `curtail key` writes it. */
const LIST_SUFFIX = '.ndjson'
/** Maximum number of lines of a list; the rest is ignored. */
const LIST_LINES_MAX = 10_000
const EMPTY_OR_COMMENT = /^[ \t\r]*(?:#|$)/
const LISTED_HASH = /^sha256:[0-9a-f]{64}$/
/** Maximum length of an API key: the same as of `value` in a policy. */
const KEY_BYTES_MAX = 512
/** Maximum number of problems, or of line numbers, in a message. */
const LISTED_MAX = 3
const NEWLINE = /\r?\n$/
/** Bytes that no value of an HTTP header can have. */
const FORBIDDEN_IN_HEADERS = /^[ \t]|[ \t]$|[\0-\x08\x0a-\x1f\x7f]/

/**
 * Hashes the values of a Secret's `data`, which are base64. A list contributes the hashes that it
 * contains, even those of expired keys: the create pods check the expiry by their clocks.
 */
export function hashApiKeys(
  data: Readonly<Record<string, string>>,
): Pick<ApiKeySecret, 'hashes' | 'problems'> {
  const hashes: string[] = []
  const problems: string[] = []
  const names = Object.keys(data).sort()
  for (const name of names.slice(0, VALUES_MAX)) {
    const bytes = Buffer.from(data[name] ?? '', 'base64')
    const value = name.endsWith(LIST_SUFFIX)
      ? readList(bytes.toString('utf8'))
      : hashValue(bytes.toString('latin1').replace(NEWLINE, ''))
    for (const hash of value.hashes) hashes.push(hash)
    if (value.problem !== undefined && problems.length <= LISTED_MAX)
      problems.push(`the value of ${name} ${value.problem}`)
  }
  if (names.length > VALUES_MAX)
    problems.unshift(`it has ${names.length} values, and only ${VALUES_MAX} are used`)
  return { hashes, problems }
}

/** The hashes of a value, and why it or some of its lines are ignored. */
interface HashedValue {
  readonly hashes: readonly string[]
  readonly problem?: string | undefined
}

function hashValue(bytes: string): HashedValue {
  const problem = faultOf(bytes)
  if (problem !== undefined) return { hashes: [], problem }
  return { hashes: [`sha256:${hash('sha256', Buffer.from(bytes, 'latin1'))}`] }
}

/**
 * Reads a list: JSON per line; empty lines, and lines that start with `#`, are ignored. As in the
 * create pods, spaces, tabs and carriage returns can be around a line, and a byte order mark is
 * ignored at the start of the list only.
 */
function readList(content: string): HashedValue {
  const hashes: string[] = []
  const faulty: number[] = []
  const lines = content.replace(/^\ufeff/, '').split('\n')
  if (lines.at(-1) === '') lines.pop()
  lines.slice(0, LIST_LINES_MAX).forEach((line, at) => {
    if (EMPTY_OR_COMMENT.test(line)) return
    const listed = listedHashOf(line)
    if (listed === undefined) faulty.push(at + 1)
    else hashes.push(listed)
  })
  const problems: string[] = []
  if (lines.length > LIST_LINES_MAX)
    problems.push(`has ${lines.length} lines, and only ${LIST_LINES_MAX} are used`)
  if (faulty.length > 0) {
    const numbers = faulty.slice(0, LISTED_MAX).join(', ')
    const more = faulty.length > LISTED_MAX ? ' and others' : ''
    problems.push(`has no API key in ${faulty.length} of its lines: ${numbers}${more}`)
  }
  return { hashes, problem: problems.length > 0 ? problems.join(', and it ') : undefined }
}

function listedHashOf(line: string): string | undefined {
  try {
    const { hash: listed } = JSON.parse(line) as { readonly hash?: unknown }
    return typeof listed === 'string' && LISTED_HASH.test(listed) ? listed : undefined
  } catch {
    return undefined // not JSON, or null
  }
}

function faultOf(bytes: string): string | undefined {
  if (bytes === '') return 'is empty'
  if (bytes.length > KEY_BYTES_MAX)
    return `has ${bytes.length} bytes: at most ${KEY_BYTES_MAX} are allowed`
  if (!FORBIDDEN_IN_HEADERS.test(bytes)) return undefined
  return 'contains a line break or another control character, or starts or ends with a space or tab'
}

/** Whether an entry references Secrets. */
export function referencesSecrets({ secretRef, secretSelector }: PolicyEntry): boolean {
  return secretRef !== undefined || secretSelector !== undefined
}

/**
 * The API keys that an entry references, from the Secrets of the policy's namespace: the first
 * `keysMax` of them.
 */
export function apiKeysOf(
  entry: PolicyEntry,
  secrets: readonly ApiKeySecret[],
  keysMax: number,
): ApiKeys {
  const selected = secrets.filter(isSelectedBy(entry))
  const all = [...new Set(selected.flatMap((secret) => secret.hashes))].sort()
  const hashes = all.slice(0, keysMax)
  if (selected.length === 0) {
    return { hashes, problem: { reason: 'SecretNotFound', message: missingSecretsOf(entry) } }
  }
  const keys = { hashes, ...(all.length > keysMax && { surplus: all.length - keysMax }) }
  const problems = selected
    .filter((secret) => secret.problems.length > 0)
    .slice(0, LISTED_MAX + 1)
    .flatMap((secret) => secret.problems.map((problem) => `Secret ${secret.name}: ${problem}`))
  if (problems.length === 0) return keys
  const more = problems.length > LISTED_MAX ? '; and others' : ''
  const message = `values are ignored: ${problems.slice(0, LISTED_MAX).join('; ')}${more}`
  return { ...keys, problem: { reason: 'KeysIgnored', message } }
}

function isSelectedBy({ secretRef, secretSelector }: PolicyEntry) {
  if (secretRef !== undefined) return ({ name }: ApiKeySecret) => name === secretRef.name
  const required = Object.entries(secretSelector?.matchLabels ?? {})
  return ({ labels }: ApiKeySecret) => required.every(([name, value]) => labels[name] === value)
}

const SHOWN_LENGTH_MAX = 300

function missingSecretsOf({ secretRef, secretSelector }: PolicyEntry): string {
  const required = `${API_KEYS_LABEL}=true`
  if (secretRef !== undefined)
    return `Secret "${secretRef.name}" not found, or it lacks the label ${required}`
  const labels = Object.entries(secretSelector?.matchLabels ?? {})
  const shown = labels.map(([name, value]) => `${name}=${value}`).join(',')
  return `no Secret has the labels ${shown.slice(0, SHOWN_LENGTH_MAX)},${required}`
}
