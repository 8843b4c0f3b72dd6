// Calls of hostile clients of the gRPC listener, each with its allowed results: a gRPC or HTTP
// status, or `closed` for a closed connection or stream.
import { gzipSync } from 'node:zlib'
import type { Random } from '../random.ts'

/** One call. */
export interface HostileCall {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent after the headers. */
  readonly body: Buffer
  /** Whether the client resets the stream instead of ending it. */
  readonly isReset: boolean
  /** Allowed results: `grpc 3`, `http 415`, `closed`. */
  readonly results: readonly string[]
}

type Case = readonly [name: string, create: (random: Random) => Partial<HostileCall>]

const DECODED_OR_INVALID = ['grpc 0', 'grpc 3']
const MIB = 1024 * 1024

const varint = (value: bigint): number[] =>
  value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)]
const delimited = (field: number, value: Buffer) =>
  Buffer.concat([
    Buffer.from([...varint(BigInt(field * 8 + 2)), ...varint(BigInt(value.length))]),
    value,
  ])
const number = (field: number, value: bigint) =>
  Buffer.from([...varint(BigInt(field * 8)), ...varint(value)])
const text = (field: number, value: string) => delimited(field, Buffer.from(value))
const entry = (key: string, value: string) =>
  delimited(1, Buffer.concat([text(1, key), text(2, value)]))
const request = (...descriptors: readonly Buffer[]) =>
  Buffer.concat([text(1, 'edge'), ...descriptors.map((one) => delimited(2, one))])
const valid = request(entry('k', 'v'))

/** A message with gRPC's length prefix. */
function framed(message: Buffer, { flag = 0, length = message.length } = {}): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, message])
}

function randomBytes(random: Random, max: number): Buffer {
  return Buffer.from(random.list(max, () => random.int(256)))
}

function mutated(random: Random): Buffer {
  const bytes = Buffer.concat([valid, number(3, BigInt(random.int(1000)))])
  for (let i = 0; i <= random.int(5); i += 1) bytes[random.int(bytes.length)] = random.int(256)
  return random.chance(0.3) ? bytes.subarray(0, random.int(bytes.length)) : bytes
}

const completeMessages: readonly Case[] = [
  ['a valid call', () => ({ body: framed(valid), results: ['grpc 0'] })],
  [
    'random bytes',
    (random) => ({ body: framed(randomBytes(random, 200)), results: DECODED_OR_INVALID }),
  ],
  [
    'a request with bytes changed',
    (random) => ({ body: framed(mutated(random)), results: DECODED_OR_INVALID }),
  ],
  [
    'an unknown unit',
    (random) => {
      const unit = random.pick([0n, 8n, 2n ** 31n, 2n ** 64n - 1n, BigInt(random.int(2 ** 30) + 8)])
      const one = Buffer.concat([entry('k', 'v'), delimited(2, number(2, unit))])
      return { body: framed(request(one)), results: ['grpc 3'] }
    },
  ],
  [
    'hits of 2^64 - 1',
    (random) => {
      const hits = delimited(3, number(1, 2n ** 64n - 1n))
      const sign = number(4, BigInt(random.int(2)))
      const one = Buffer.concat([entry('k', 'v'), hits, sign])
      return {
        body: framed(Buffer.concat([request(one), number(3, 2n ** 64n - 1n)])),
        results: DECODED_OR_INVALID,
      }
    },
  ],
  [
    'strings of every kind',
    (random) => {
      const odd = ['', '\0', '\u{1f600}', '*', '__proto__', 'a\r\nb', '%', 'x'.repeat(5000)]
      const one = Buffer.concat(random.list(5, () => entry(random.pick(odd), random.pick(odd))))
      return { body: framed(request(one)), results: DECODED_OR_INVALID }
    },
  ],
  [
    'groups in groups',
    (random) => {
      const groups = Buffer.alloc(1 + random.int(5000), 11)
      return { body: framed(Buffer.concat([valid, groups])), results: ['grpc 3'] }
    },
  ],
]

const largeMessages: readonly Case[] = [
  [
    '10,000 descriptors',
    () => {
      const many = Array.from({ length: 10_000 }, (_, i) => entry('k', String(i)))
      return { body: framed(request(...many)), results: ['grpc 3'] }
    },
  ],
  [
    '10,000 entries',
    () => {
      const many = Buffer.concat(Array.from({ length: 10_000 }, () => entry('k', 'v')))
      return { body: framed(request(many)), results: ['grpc 3'] }
    },
  ],
  [
    'a string of 1 MB',
    () => ({ body: framed(request(entry('k', 'x'.repeat(MIB)))), results: ['grpc 0'] }),
  ],
  [
    'more than 4 MiB',
    () => ({ body: framed(Buffer.alloc(5 * MIB)), results: ['grpc 8', 'closed'] }),
  ],
  [
    'a small message that decompresses to a large one',
    () => ({
      headers: { 'grpc-encoding': 'gzip' },
      body: framed(gzipSync(Buffer.alloc(64 * MIB)), { flag: 1 }),
      results: ['grpc 8'],
    }),
  ],
]

const frameCases: readonly Case[] = [
  ['no message', () => ({ body: Buffer.alloc(0), results: ['grpc 12'] })],
  [
    'a cut-off length prefix',
    (random) => ({ body: framed(valid).subarray(0, 1 + random.int(4)), results: ['grpc 13'] }),
  ],
  [
    'two messages',
    () => ({ body: Buffer.concat([framed(valid), framed(valid)]), results: ['grpc 12'] }),
  ],
  [
    'a thousand empty messages',
    () => ({
      body: Buffer.concat(Array.from({ length: 1000 }, () => framed(Buffer.alloc(0)))),
      results: ['grpc 12'],
    }),
  ],
  [
    'a truncated message',
    () => ({ body: framed(valid, { length: 100 }), results: ['grpc 12', 'grpc 13'] }),
  ],
  [
    'a length of 4 GiB',
    () => ({ body: framed(valid, { length: 2 ** 32 - 1 }), results: ['grpc 8'] }),
  ],
  [
    'bytes that are marked as compressed',
    (random) => ({
      headers: { 'grpc-encoding': random.pick(['gzip', 'deflate']) },
      body: framed(randomBytes(random, 50), { flag: 1 }),
      results: ['grpc 13'],
    }),
  ],
  [
    'an unknown compression',
    () => ({
      headers: { 'grpc-encoding': 'none such' },
      body: framed(valid, { flag: 1 }),
      results: ['grpc 12'],
    }),
  ],
  [
    'a reset within a message',
    (random) => ({
      body: framed(valid).subarray(0, random.int(20)),
      isReset: true,
      results: ['closed', 'grpc 0', 'grpc 12', 'grpc 13'],
    }),
  ],
]

const headerCases: readonly Case[] = [
  [
    'another path',
    (random) => {
      const odd = ['/', '/x', '//', '/envoy.service.ratelimit.v3.RateLimitService/', '/%ff%00', '*']
      const path = random.chance(0.5)
        ? random.pick(odd)
        : `/${randomBytes(random, 40)
            .toString('latin1')
            .replace(/[^!-~\xa0-\xff]/g, '')}`
      return { headers: { ':path': path }, results: ['grpc 12', 'closed'] }
    },
  ],
  [
    'another method',
    (random) => ({
      headers: { ':method': random.pick(['GET', 'PUT', 'BREW', 'CONNECT2']) },
      results: ['grpc 0', 'grpc 12', 'closed'],
    }),
  ],
  [
    'another content type',
    (random) => ({
      headers: {
        'content-type': random.pick(['', 'text/html', 'application/json', 'x'.repeat(999)]),
      },
      results: ['http 415'],
    }),
  ],
  [
    'an invalid timeout',
    (random) => ({
      headers: { 'grpc-timeout': random.pick(['', 'x', '-1S', '99999999999S', '1e9n', '%é']) },
      results: ['grpc 0', 'grpc 4', 'grpc 13'],
    }),
  ],
  [
    'an expired timeout',
    (random) => ({
      headers: { 'grpc-timeout': random.pick(['0n', '1n', '1u', '0S']) },
      results: ['grpc 0', 'grpc 4'],
    }),
  ],
  [
    'odd headers',
    (random) => ({
      headers: {
        'x-odd-bin': randomBytes(random, 30)
          .toString('latin1')
          .replace(/[^!-~]/g, '='),
        'grpc-trace-bin': '!!',
        'grpc-accept-encoding': ','.repeat(random.int(500)),
        'x-long': 'y'.repeat(random.int(4000)),
        'x-high': '\xe9\xff',
      },
      results: ['grpc 0'],
    }),
  ],
  [
    'health or reflection',
    (random) => ({
      headers: {
        ':path': random.pick([
          '/grpc.health.v1.Health/Check',
          '/grpc.health.v1.Health/List',
          '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
          '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
        ]),
      },
      body: framed(random.chance(0.5) ? randomBytes(random, 60) : text(1, 'unknown')),
      results: ['grpc 0', 'grpc 5', 'grpc 13'],
    }),
  ],
]

const small: readonly Case[] = [...completeMessages, ...frameCases, ...headerCases]

/** The share of large calls, each of which takes some ms. */
const LARGE = 0.002

/** The next call of a client. */
export function nextHostileCall(random: Random): HostileCall {
  const [name, create] = random.pick(random.chance(LARGE) ? largeMessages : small)
  const { headers = {}, body = framed(valid), isReset = false, results = [] } = create(random)
  const usual = {
    ':method': 'POST',
    ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    'content-type': 'application/grpc',
    te: 'trailers',
  }
  return { name, headers: { ...usual, ...headers }, body, isReset, results }
}

/** The bytes of a connection that is not valid HTTP/2. */
export function brokenConnection(random: Random): Buffer {
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
  const kinds = [
    () => randomBytes(random, 300),
    () => preface.subarray(0, random.int(preface.length)),
    () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    () => Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), // a TLS client's first bytes
    () => Buffer.concat([preface, randomBytes(random, 300)]),
    () => Buffer.concat([preface, settings, randomBytes(random, 300)]),
    () => Buffer.concat([preface, settings, Buffer.from([255, 255, 255, 1, 4, 0, 0, 0, 1])]),
  ]
  return random.pick(kinds)()
}
