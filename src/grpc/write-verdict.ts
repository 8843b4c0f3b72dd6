// Encodes a verdict as Envoy's RateLimitResponse v3. Headers use `value`, because Envoy ignores
// `raw_value`. Fields with their default value are omitted.
import { units } from '../limits/descriptor.ts'
import type { Json, JsonObject } from '../limits/rule.ts'
import type { Code, DescriptorStatus, Verdict } from '../limits/verdict.ts'
import {
  STRUCT_FIELDS,
  ENTRY_KEY,
  ENTRY_VALUE,
  VALUE_NULL,
  VALUE_NUMBER,
  VALUE_STRING,
  VALUE_BOOL,
  VALUE_STRUCT,
  VALUE_LIST,
  LIST_VALUES,
} from '../protobuf/struct-tags.ts'
import { DELIMITED, tagOf, VARINT } from '../protobuf/wire-types.ts'
import { WireWriter } from '../protobuf/wire-writer.ts'

const RESPONSE_CODE = tagOf(1, VARINT)
const RESPONSE_STATUSES = tagOf(2, DELIMITED)
const RESPONSE_HEADERS = tagOf(3, DELIMITED)
const RESPONSE_BODY = tagOf(5, DELIMITED)
const RESPONSE_METADATA = tagOf(6, DELIMITED)
const STATUS_CODE = tagOf(1, VARINT)
const STATUS_LIMIT = tagOf(2, DELIMITED)
const STATUS_REMAINING = tagOf(3, VARINT)
const STATUS_RESET = tagOf(4, DELIMITED)
const LIMIT_REQUESTS = tagOf(1, VARINT)
const LIMIT_UNIT = tagOf(2, VARINT)
const LIMIT_NAME = tagOf(3, DELIMITED)
const DURATION_SECONDS = tagOf(1, VARINT)
const HEADER_KEY = tagOf(1, DELIMITED)
const HEADER_VALUE = tagOf(2, DELIMITED)

const numberOfCode: Readonly<Record<Code, number>> = { OK: 1, OVER_LIMIT: 2 }

const writer = new WireWriter()

/** Encodes a verdict. */
export function writeVerdict(verdict: Verdict): Buffer {
  writer.start()
  writer.number(RESPONSE_CODE, numberOfCode[verdict.code])
  for (const status of verdict.statuses) writeStatus(status)
  for (const [name, value] of verdict.responseHeaders) {
    const header = writer.open(RESPONSE_HEADERS)
    writer.string(HEADER_KEY, name)
    writer.string(HEADER_VALUE, value)
    writer.close(header)
  }
  if (verdict.body !== undefined) writer.string(RESPONSE_BODY, verdict.body)
  if (verdict.dynamicMetadata !== undefined) {
    writeStruct(RESPONSE_METADATA, verdict.dynamicMetadata)
  }
  return writer.finish()
}

function writeStatus(status: DescriptorStatus): void {
  const { code, currentLimit, limitRemaining, resetSeconds } = status
  const opened = writer.open(RESPONSE_STATUSES)
  writer.number(STATUS_CODE, numberOfCode[code])
  if (currentLimit !== undefined) writeLimit(currentLimit)
  if (limitRemaining !== 0) writer.number(STATUS_REMAINING, limitRemaining)
  if (resetSeconds !== undefined) {
    const reset = writer.open(STATUS_RESET)
    if (resetSeconds !== 0) writer.number(DURATION_SECONDS, resetSeconds)
    writer.close(reset)
  }
  writer.close(opened)
}

function writeLimit(limit: NonNullable<DescriptorStatus['currentLimit']>): void {
  const { requestsPerUnit, unit, name } = limit
  const opened = writer.open(STATUS_LIMIT)
  if (requestsPerUnit !== 0) writer.number(LIMIT_REQUESTS, requestsPerUnit)
  if (unit !== undefined) writer.number(LIMIT_UNIT, units[unit])
  if (name !== undefined && name !== '') writer.string(LIMIT_NAME, name)
  writer.close(opened)
}

function writeStruct(tag: number, value: JsonObject): void {
  const struct = writer.open(tag)
  for (const [name, member] of Object.entries(value)) {
    const field = writer.open(STRUCT_FIELDS)
    writer.string(ENTRY_KEY, name)
    const opened = writer.open(ENTRY_VALUE)
    writeValue(member)
    writer.close(opened)
    writer.close(field)
  }
  writer.close(struct)
}

/** Writes the one member of a Value, even if it has its default value. */
function writeValue(value: Json): void {
  if (typeof value === 'boolean') writer.number(VALUE_BOOL, value ? 1 : 0)
  else if (typeof value === 'number') writer.double(VALUE_NUMBER, value)
  else if (typeof value === 'string') writer.string(VALUE_STRING, value)
  else writeNested(value)
}

function writeNested(value: null | readonly Json[] | JsonObject): void {
  if (value === null) writer.number(VALUE_NULL, 0)
  else if (!isList(value)) writeStruct(VALUE_STRUCT, value)
  else {
    const list = writer.open(VALUE_LIST)
    for (const item of value) {
      const opened = writer.open(LIST_VALUES)
      writeValue(item)
      writer.close(opened)
    }
    writer.close(list)
  }
}

function isList(value: readonly Json[] | JsonObject): value is readonly Json[] {
  return Array.isArray(value)
}
