// Parses a RateLimitRequest in proto3-JSON: names in either spelling, numbers also as strings,
// enums by name or number, null = absent. An error names the path of the invalid field.
import { isUtf8 } from 'node:buffer'
import {
  type Descriptor,
  DESCRIPTORS_MAX,
  ENTRIES_MAX,
  type Entry,
  HITS_MAX,
  type LimitRequest,
  type Unit,
  units,
} from '../../limits/descriptor.ts'
import { LimitRequestError } from '../../limits/verdict.ts'

const UINT32_MAX = 2n ** 32n - 1n
const UINT64_MAX = 2n ** 64n - 1n

/** A value and its path, such as `descriptors[0].limit`. */
interface JsonNode {
  readonly value: unknown
  readonly at: string
}

/** Parses a request. Throws LimitRequestError with the first error. */
export function parseJsonRequest(body: Buffer): LimitRequest {
  const request = readMembers({ value: parseJson(body), at: '' }, [
    'domain',
    'descriptors',
    'hitsAddend',
  ])
  const hits = Math.max(1, readNumber(request('hitsAddend'), UINT32_MAX) ?? 0)
  return {
    domain: readString(request('domain')),
    descriptors: readList(request('descriptors'), DESCRIPTORS_MAX).map((item) =>
      readDescriptor(item, hits),
    ),
    hits,
  }
}

function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new LimitRequestError('the body must be UTF-8')
  try {
    return JSON.parse(body.toString()) as unknown
  } catch (error) {
    throw new LimitRequestError(`the body must be JSON: ${(error as Error).message}`)
  }
}

function readDescriptor(item: JsonNode, hitsOfRequest: number): Descriptor {
  const descriptor = readMembers(item, ['entries', 'limit', 'hitsAddend', 'isNegativeHits'])
  const limit = descriptor('limit')
  const hits = readNumber(descriptor('hitsAddend'), UINT64_MAX)
  const isNegative = readFlag(descriptor('isNegativeHits'))
  return {
    entries: readList(descriptor('entries'), ENTRIES_MAX).map(readEntry),
    override: limit.value === undefined ? undefined : readLimit(limit),
    hits: isNegative ? 0 - (hits ?? hitsOfRequest) : hits,
  }
}

function readEntry(item: JsonNode): Entry {
  const entry = readMembers(item, ['key', 'value'])
  return { key: readString(entry('key')), value: readString(entry('value')) }
}

function readLimit(item: JsonNode): NonNullable<Descriptor['override']> {
  const limit = readMembers(item, ['requestsPerUnit', 'unit'])
  return {
    requestsPerUnit: readNumber(limit('requestsPerUnit'), UINT32_MAX) ?? 0,
    unit: readUnit(limit('unit')),
  }
}

/** The members of an object by their names in lowerCamelCase; `undefined` if absent or null. */
function readMembers(
  { value, at }: JsonNode,
  names: readonly string[],
): (name: string) => JsonNode {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    fail({ value, at: at === '' ? 'the body' : at }, 'an object')
  }
  const pathOf = (name: string) => (at === '' ? name : `${at}.${name}`)
  const members = new Map<string, unknown>()
  for (const [sent, member] of Object.entries(value)) {
    const name = names.find((expected) => expected === sent || snakeCase(expected) === sent)
    if (name === undefined) throw new LimitRequestError(`${pathOf(sent.slice(0, 100))} is unknown`)
    if (members.has(name)) throw new LimitRequestError(`${pathOf(name)} occurs twice`)
    members.set(name, member)
  }
  return (name) => ({ value: members.get(name) ?? undefined, at: pathOf(name) })
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function readList({ value, at }: JsonNode, itemsMax: number): JsonNode[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) fail({ value, at }, 'a list')
  if (value.length > itemsMax) {
    throw new LimitRequestError(`${at} must be a list of at most ${itemsMax}`)
  }
  return value.map((item: unknown, i) => ({ value: item, at: `${at}[${i}]` }))
}

function readString({ value, at }: JsonNode): string {
  if (value === undefined) return ''
  if (typeof value !== 'string' || !value.isWellFormed()) fail({ value, at }, 'a string of UTF-8')
  return value
}

function readFlag({ value, at }: JsonNode): boolean {
  if (value !== undefined && typeof value !== 'boolean') fail({ value, at }, 'true or false')
  return value ?? false
}

/** An integer from 0 to `max`, capped at HITS_MAX. */
function readNumber({ value, at }: JsonNode, max: bigint): number | undefined {
  if (value === undefined) return undefined
  const number = toInteger(value)
  if (number === undefined || number < 0n || number > max) {
    fail({ value, at }, `a whole number from 0 to ${String(max)}`)
  }
  return Math.min(HITS_MAX, Number(number))
}

function toInteger(value: unknown): bigint | undefined {
  if (typeof value === 'string') return /^\d{1,20}$/.test(value) ? BigInt(value) : undefined
  if (value === 2 ** 64) return UINT64_MAX // 2^64 - 1 as a double
  return Number.isInteger(value) ? BigInt(value as number) : undefined
}

function readUnit({ value, at }: JsonNode): Unit {
  const allowed = Object.entries(units) as [Unit, number][]
  const unit = allowed.find(([name, number]) => value === name || value === number)
  if (unit === undefined) {
    fail({ value, at }, `one of ${allowed.map(([name, number]) => `${number} ${name}`).join(', ')}`)
  }
  return unit[0]
}

/** Rejects a value; the message truncates long ones. */
function fail({ value, at }: JsonNode, allowed: string): never {
  throw new LimitRequestError(`${at} must be ${allowed}: it is ${describeValue(value)}`)
}

function describeValue(value: unknown): string {
  if (value === undefined) return 'absent'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return JSON.stringify(value).slice(0, 100).toWellFormed()
}
