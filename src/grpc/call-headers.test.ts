// Valid and invalid headers of calls.
import { describe, expect, test } from '@jest/globals'
import { parseCallHeaders } from './call-headers.ts'

type Pair = readonly [name: string, value: string]
const valid: readonly Pair[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a.B/C'],
  ['content-type', 'application/grpc'],
]
const parse = (...pairs: readonly Pair[]) =>
  parseCallHeaders(pairs.map(([name, value]) => ({ name, value, bytes: 0, isValid: true })))
const withFields = (...more: readonly Pair[]) => parse(...valid, ...more)
const without = (name: string, ...more: readonly Pair[]) =>
  parse(...valid.filter(([each]) => each !== name), ...more)

test('the path, encoding, timeout and trace of a call are parsed', () => {
  expect(withFields(['te', 'trailers'], ['x', 'y'])).toEqual({
    path: '/a.B/C',
    encoding: 'identity',
    timeoutMs: undefined,
  })
  const timed = withFields(['grpc-encoding', 'gzip'], ['grpc-timeout', '20m'])
  expect(timed).toMatchObject({ encoding: 'gzip', timeoutMs: 20 })
  expect(withFields(['traceparent', '00-a-b-01'])).toMatchObject({ traceparent: '00-a-b-01' })
})

test.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3000],
  ['99999999u', 99_999.999],
  ['0n', 0],
])('a timeout of %s is %d ms', (timeout, ms) => {
  expect(withFields(['grpc-timeout', timeout])).toMatchObject({ timeoutMs: ms })
})

test.each(['', 'S', '1', '-1S', '123456789S', '1e3m', '1 S', '1s'])(
  '“%s” is an invalid timeout',
  (timeout) => {
    expect(withFields(['grpc-timeout', timeout])).toMatchObject({ fault: { code: 'INTERNAL' } })
  },
)

describe('content types', () => {
  const type = (value: string) => without('content-type', ['content-type', value])

  test.each(['application/grpc', 'application/grpc+proto', 'application/grpc; v=1'])(
    '“%s” is accepted',
    (value) => {
      expect(type(value)).toMatchObject({ path: '/a.B/C' })
    },
  )
  test.each(['', 'application/grpc-web', 'application/json', 'text/html'])(
    '“%s” is rejected',
    (value) => {
      expect(type(value)).toEqual({ kind: 'http', status: 415 })
    },
  )
  test('an absent content type is rejected', () => {
    expect(without('content-type')).toEqual({ kind: 'http', status: 415 })
  })
})

test('unsupported calls are rejected', () => {
  expect(withFields(['grpc-encoding', 'snappy'])).toMatchObject({
    fault: { code: 'UNIMPLEMENTED' },
  })
  const get = parse([':method', 'GET'], ...valid.slice(1))
  expect(get).toMatchObject({ fault: { code: 'UNIMPLEMENTED' } })
  expect(parseCallHeaders(undefined)).toMatchObject({
    kind: 'grpc',
    fault: { code: 'RESOURCE_EXHAUSTED' },
  })
})

describe('malformed headers', () => {
  const malformed: Record<string, readonly Pair[]> = {
    'a call without a method': valid.slice(1),
    'a call without a scheme': valid.filter(([name]) => name !== ':scheme'),
    'a call without a path': valid.filter(([name]) => name !== ':path'),
    'an empty path': [...valid.slice(0, 2), [':path', ''], ...valid.slice(3)],
    'two paths': [[':path', '/x'], ...valid],
    'an unknown pseudo-header': [[':status', '200'], ...valid],
    'a pseudo-header after others': [...valid, [':authority', 'x']],
    'a connection header': [...valid, ['connection', 'close']],
    'te with a value other than trailers': [...valid, ['te', 'gzip']],
  }
  test.each(Object.entries(malformed))('%s is malformed', (_, pairs) => {
    expect(parse(...pairs)).toEqual({ kind: 'malformed' })
  })
  test('a field that HTTP/2 does not allow is malformed', () => {
    expect(parseCallHeaders([{ name: 'X', value: '', bytes: 0, isValid: false }])).toEqual({
      kind: 'malformed',
    })
  })
})
