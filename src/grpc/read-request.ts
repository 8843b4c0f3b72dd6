// Parses Envoy's RateLimitRequest v3 by the rules of protobuf: fields in any order, the last value
// wins, messages merge, unknown fields are skipped. Does not decide on limits.
import {
  type Descriptor,
  DESCRIPTORS_MAX,
  ENTRIES_MAX,
  type Entry,
  HITS_MAX,
  type LimitRequest,
  type Unit,
  units,
} from '../limits/descriptor.ts'
import { LimitRequestError } from '../limits/verdict.ts'
import { WireError, WireReader } from '../protobuf/wire-reader.ts'
import { DELIMITED, tagOf, VARINT } from '../protobuf/wire-types.ts'

const unitOfNumber = new Map<number, Unit>(
  Object.entries(units).map(([name, number]) => [number, name as Unit]),
)

const REQUEST_DOMAIN = tagOf(1, DELIMITED)
const REQUEST_DESCRIPTORS = tagOf(2, DELIMITED)
const REQUEST_HITS = tagOf(3, VARINT)
const DESCRIPTOR_ENTRIES = tagOf(1, DELIMITED)
const DESCRIPTOR_LIMIT = tagOf(2, DELIMITED)
const DESCRIPTOR_HITS = tagOf(3, DELIMITED)
const DESCRIPTOR_IS_NEGATIVE = tagOf(4, VARINT)
const ENTRY_KEY = tagOf(1, DELIMITED)
const ENTRY_VALUE = tagOf(2, DELIMITED)
const LIMIT_REQUESTS = tagOf(1, VARINT)
const LIMIT_UNIT = tagOf(2, VARINT)
const WRAPPED_VALUE = tagOf(1, VARINT)

/** A descriptor as received. */
interface ReceivedDescriptor {
  readonly entries: Entry[]
  hasLimit: boolean
  requestsPerUnit: number
  unit: number
  /** `undefined`: the field is absent. */
  hits: number | undefined
  isNegative: boolean
}

/** Parses a request. Throws LimitRequestError if it is malformed or invalid. */
export function readRequest(bytes: Buffer): LimitRequest {
  try {
    return parseRequest(bytes)
  } catch (error) {
    throw error instanceof WireError ? new LimitRequestError(error.message) : error
  }
}

function parseRequest(bytes: Buffer): LimitRequest {
  const reader = new WireReader(bytes, 'RateLimitRequest')
  const sent: ReceivedDescriptor[] = []
  let domain = ''
  let hits = 0
  while (reader.at < reader.length) {
    const tag = reader.tag()
    if (tag === REQUEST_DESCRIPTORS) sent.push(readDescriptor(reader, sent.length))
    else if (tag === REQUEST_DOMAIN) domain = reader.string()
    else if (tag === REQUEST_HITS) hits = reader.varint()
    else reader.skip(tag)
  }
  const hitsEach = Math.max(1, hits)
  return {
    domain,
    descriptors: sent.map((descriptor) => descriptorOf(descriptor, hitsEach)),
    hits: hitsEach,
  }
}

function readDescriptor(reader: WireReader, index: number): ReceivedDescriptor {
  if (index >= DESCRIPTORS_MAX) {
    throw new LimitRequestError(`a request may have at most ${DESCRIPTORS_MAX} descriptors`)
  }
  const target: ReceivedDescriptor = {
    entries: [],
    hasLimit: false,
    requestsPerUnit: 0,
    unit: 0,
    hits: undefined,
    isNegative: false,
  }
  const end = reader.endOfStrings()
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === DESCRIPTOR_ENTRIES) target.entries.push(readEntry(reader, target.entries.length))
    else if (tag === DESCRIPTOR_HITS) target.hits = readWrapped(reader, target.hits ?? 0)
    else if (tag === DESCRIPTOR_IS_NEGATIVE) target.isNegative = reader.bool()
    else if (tag === DESCRIPTOR_LIMIT) readLimit(reader, target)
    else reader.skip(tag)
  }
  reader.finish(end)
  return target
}

function readEntry(reader: WireReader, index: number): Entry {
  if (index >= ENTRIES_MAX) {
    throw new LimitRequestError(`a descriptor may have at most ${ENTRIES_MAX} entries`)
  }
  let key = ''
  let value = ''
  const end = reader.endOfField()
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === ENTRY_KEY) key = reader.string()
    else if (tag === ENTRY_VALUE) value = reader.string()
    else reader.skip(tag)
  }
  reader.finish(end)
  return { key, value }
}

function readLimit(reader: WireReader, target: ReceivedDescriptor): void {
  target.hasLimit = true
  const end = reader.endOfField()
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === LIMIT_REQUESTS) target.requestsPerUnit = reader.varint()
    else if (tag === LIMIT_UNIT) target.unit = reader.varint() | 0
    else reader.skip(tag)
  }
  reader.finish(end)
}

/** Reads a UInt64Value; `before` is the value of an earlier occurrence of the field. */
function readWrapped(reader: WireReader, before: number): number {
  let value = before
  const end = reader.endOfField()
  while (reader.at < end) {
    const tag = reader.tag()
    if (tag === WRAPPED_VALUE) {
      const low = reader.varint()
      value = reader.high === 0 ? low : HITS_MAX
    } else reader.skip(tag)
  }
  reader.finish(end)
  return value
}

function descriptorOf(sent: ReceivedDescriptor, hitsEach: number): Descriptor {
  const { entries, requestsPerUnit, isNegative } = sent
  const override = sent.hasLimit ? { requestsPerUnit, unit: unitOf(sent.unit) } : undefined
  const hits = isNegative ? 0 - (sent.hits ?? hitsEach) : sent.hits // never -0
  return { entries, override, hits }
}

function unitOf(number: number): Unit {
  const unit = unitOfNumber.get(number)
  if (unit === undefined) {
    const allowed = Object.entries(units).map(([name, value]) => `${value} ${name}`)
    throw new LimitRequestError(
      `the unit of a descriptor’s limit must be one of ${allowed.join(', ')}: it is ${number}`,
    )
  }
  return unit
}
