// What the headers of a call say, and what is wrong with them.
import { describe, expect, test } from '@jest/globals'
import { parseCallHead } from './call-head.ts'

type Pair = readonly [name: string, value: string]
const usual: readonly Pair[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a.B/C'],
  ['content-type', 'application/grpc'],
]
const head = (...pairs: readonly Pair[]) =>
  parseCallHead(pairs.map(([name, value]) => ({ name, value, bytes: 0, isValid: true })))
const withFields = (...more: readonly Pair[]) => head(...usual, ...more)
const without = (name: string, ...more: readonly Pair[]) =>
  head(...usual.filter(([each]) => each !== name), ...more)

test('a call says its method, packing and time', () => {
  expect(withFields(['te', 'trailers'], ['x', 'y'])).toEqual({
    path: '/a.B/C',
    packing: 'identity',
    timeoutMs: undefined,
  })
  const timed = withFields(['grpc-encoding', 'gzip'], ['grpc-timeout', '20m'])
  expect(timed).toMatchObject({ packing: 'gzip', timeoutMs: 20 })
  expect(withFields(['traceparent', '00-a-b-01'])).toMatchObject({ traceparent: '00-a-b-01' })
})

test.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3000],
  ['99999999u', 99_999.999],
  ['0n', 0],
])('a time of %s is %d ms', (timeout, ms) => {
  expect(withFields(['grpc-timeout', timeout])).toMatchObject({ timeoutMs: ms })
})

test.each(['', 'S', '1', '-1S', '123456789S', '1e3m', '1 S', '1s'])(
  '“%s” is no time',
  (timeout) => {
    expect(withFields(['grpc-timeout', timeout])).toMatchObject({ fault: { code: 'INTERNAL' } })
  },
)

describe('content types', () => {
  const type = (value: string) => without('content-type', ['content-type', value])

  test.each(['application/grpc', 'application/grpc+proto', 'application/grpc; v=1'])(
    '%s',
    (value) => {
      expect(type(value)).toMatchObject({ path: '/a.B/C' })
    },
  )
  test.each(['', 'application/grpc-web', 'application/json', 'text/html'])(
    '“%s” is none',
    (value) => {
      expect(type(value)).toEqual({ kind: 'http', status: 415 })
    },
  )
  test('an absent one is none', () => {
    expect(without('content-type')).toEqual({ kind: 'http', status: 415 })
  })
})

test('what cannot be done is told', () => {
  expect(withFields(['grpc-encoding', 'snappy'])).toMatchObject({
    fault: { code: 'UNIMPLEMENTED' },
  })
  const get = head([':method', 'GET'], ...usual.slice(1))
  expect(get).toMatchObject({ fault: { code: 'UNIMPLEMENTED' } })
  expect(parseCallHead(undefined)).toMatchObject({
    kind: 'grpc',
    fault: { code: 'RESOURCE_EXHAUSTED' },
  })
})

describe('malformed is', () => {
  const malformed: Record<string, readonly Pair[]> = {
    'a call without a method': usual.slice(1),
    'a call without a scheme': usual.filter(([name]) => name !== ':scheme'),
    'a call without a path': usual.filter(([name]) => name !== ':path'),
    'an empty path': [...usual.slice(0, 2), [':path', ''], ...usual.slice(3)],
    'two paths': [[':path', '/x'], ...usual],
    'an unknown pseudo-header': [[':status', '200'], ...usual],
    'a pseudo-header after others': [...usual, [':authority', 'x']],
    'a connection header': [...usual, ['connection', 'close']],
    'te with more than trailers': [...usual, ['te', 'gzip']],
  }
  test.each(Object.entries(malformed))('%s', (_, pairs) => {
    expect(head(...pairs)).toEqual({ kind: 'malformed' })
  })
  test('a field that HTTP/2 forbids', () => {
    expect(parseCallHead([{ name: 'X', value: '', bytes: 0, isValid: false }])).toEqual({
      kind: 'malformed',
    })
  })
})
