// protobufjs decodes every encoded verdict to the original, for strings and lists of any length.
import { expect, test } from '@jest/globals'
import type { ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import fc from 'fast-check'
import { type Unit, units } from '../limits/descriptor.ts'
import type { Json } from '../limits/rule.ts'
import type { Verdict } from '../limits/verdict.ts'
import { writeVerdict } from './write-verdict.ts'

const api = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: [new URL('./proto', import.meta.url).pathname],
  longs: Number,
  enums: String,
  bytes: String,
})
const service = api['envoy.service.ratelimit.v3.RateLimitService'] as ServiceDefinition
const decode = (bytes: Buffer): unknown => service['ShouldRateLimit']?.responseDeserialize(bytes)

const string = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.integer({ min: 0, max: 40_000 }).map((length) => 'é'.repeat(length)),
  fc.nat(200).map((length) => 'x'.repeat(length)),
)
const unitNames = Object.keys(units) as Unit[]
const UINT32 = 2 ** 32 - 1
const uint32 = fc.oneof(fc.constantFrom(0, 1, 127, 128, 2 ** 31, UINT32), fc.nat(UINT32))
const code = fc.constantFrom('OK' as const, 'OVER_LIMIT' as const)
const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>

const verdicts: fc.Arbitrary<Verdict> = fc.record({
  code,
  statuses: fc.array(
    fc.record({
      code,
      currentLimit: fc.option(
        fc.record({
          requestsPerUnit: uint32,
          unit: fc.option(fc.constantFrom(...unitNames), { nil: undefined }),
          name: fc.option(string, { nil: undefined }),
        }),
        { nil: undefined },
      ),
      limitRemaining: uint32,
      resetSeconds: fc.option(fc.nat(Number.MAX_SAFE_INTEGER), { nil: undefined }),
    }),
    { maxLength: 5 },
  ),
  responseHeaders: fc.array(fc.tuple(string, string), { maxLength: 4 }),
  body: fc.option(string, { nil: undefined }),
  dynamicMetadata: fc.option(fc.dictionary(fc.string(), json, { maxKeys: 5 }), { nil: undefined }),
})

/** A Value as protobufjs decodes it. */
function valueOf(value: Json): object {
  if (value === null) return { nullValue: 'NULL_VALUE' }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return { numberValue: value }
  if (typeof value === 'string') return { stringValue: value }
  if (Array.isArray(value)) {
    const values = (value as Json[]).map(valueOf)
    return { listValue: values.length === 0 ? {} : { values } }
  }
  return { structValue: structOf(value as Record<string, Json>) }
}

function structOf(value: Readonly<Record<string, Json>>): object {
  const members = Object.entries(value).map(([name, member]) => [name, valueOf(member)] as const)
  return members.length === 0 ? {} : { fields: Object.fromEntries(members) }
}

const present = <T>(name: string, value: T | undefined) =>
  value === undefined || value === 0 || value === '' ? {} : { [name]: value }

function expected(verdict: Verdict): object {
  const { statuses, responseHeaders, body, dynamicMetadata } = verdict
  return {
    overallCode: verdict.code,
    ...(statuses.length > 0 && { statuses: statuses.map(statusOf) }),
    ...(responseHeaders.length > 0 && {
      responseHeadersToAdd: responseHeaders.map(([key, value]) => ({ key, value })),
    }),
    ...(body !== undefined && { rawBody: Buffer.from(body).toString('base64') }),
    ...present('dynamicMetadata', dynamicMetadata && structOf(dynamicMetadata)),
  }
}

function statusOf(status: Verdict['statuses'][number]): object {
  const { currentLimit: limit, resetSeconds } = status
  return {
    code: status.code,
    ...(limit !== undefined && {
      currentLimit: {
        ...present('requestsPerUnit', limit.requestsPerUnit),
        ...present('unit', limit.unit),
        ...present('name', limit.name),
      },
    }),
    ...present('limitRemaining', status.limitRemaining),
    ...(resetSeconds !== undefined && { durationUntilReset: present('seconds', resetSeconds) }),
  }
}

/** The value without the members that protobufjs adds; `__proto__` is an ordinary member. */
const plain = (value: unknown) => JSON.stringify(sorted(JSON.parse(JSON.stringify(value))))
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const)
  return members.sort(([a], [b]) => (a < b ? -1 : 1))
}

test('protobufjs decodes all verdicts', () => {
  fc.assert(
    fc.property(verdicts, (verdict) => {
      expect(plain(decode(writeVerdict(verdict)))).toEqual(plain(expected(verdict)))
    }),
    { numRuns: 500 },
  )
})

const empty: Verdict = {
  code: 'OK',
  statuses: [],
  responseHeaders: [],
  body: undefined,
  dynamicMetadata: undefined,
}

test('the shortest response has two bytes', () => {
  expect([...writeVerdict(empty)]).toEqual([8, 1])
})

test('headers use value, because Envoy ignores raw_value', () => {
  const bytes = writeVerdict({ ...empty, responseHeaders: [['a', 'b']] })
  expect([...bytes]).toEqual([8, 1, 26, 6, 10, 1, 97, 18, 1, 98])
})

test('a response keeps its bytes when the next one is encoded', () => {
  const first = writeVerdict({ ...empty, body: 'first' })
  const before = Buffer.from(first)
  writeVerdict({ ...empty, body: 'other' })
  expect(first).toEqual(before)
})

test('an invalid number is a defect, and the next response is intact', () => {
  const status = { code: 'OK', currentLimit: undefined, resetSeconds: undefined } as const
  for (const limitRemaining of [-1, 0.5, NaN, Infinity]) {
    const bad = { ...empty, statuses: [{ ...status, limitRemaining }] }
    expect(() => writeVerdict(bad)).toThrow(RangeError)
    expect([...writeVerdict(empty)]).toEqual([8, 1])
  }
})

test('a lone surrogate becomes U+FFFD', () => {
  expect(decode(writeVerdict({ ...empty, responseHeaders: [['a', '\ud800']] }))).toEqual({
    overallCode: 'OK',
    responseHeadersToAdd: [{ key: 'a', value: '\ufffd' }],
  })
})
