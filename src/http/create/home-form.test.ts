// How a form is parsed, byte for byte, and where a problem is shown.
import { expect, test } from '@jest/globals'
import { bareLink } from '../pages/home.ts'
import { parseForm, placeProblem } from './home-form.ts'

const parsed = (form: string | Buffer) => parseForm(Buffer.from(form)).parsed
const errorsOf = (form: string | Buffer) => {
  const result = parsed(form)
  return 'problem' in result ? result.problem.errors : []
}

test.each(['1', '1.0', '01.000'])('ttl_days %s is 1, as in the API', (days) => {
  expect(parsed(`ttl_days=${days}`)).toEqual({ value: { ttl_days: 1 } })
})

test('empty fields are absent, and ttl_days in digits is a number', () => {
  expect(
    parsed('long_url=https%3A%2F%2Fa.example%2F%3Fq%3D%C3%A4+b&custom_alias=&ttl_days=007'),
  ).toEqual({
    value: { long_url: 'https://a.example/?q=ä b', ttl_days: 7 },
  })
})

test('ttl_days that is not an integer stays a string, which the schema rejects', () => {
  for (const days of ['1e1', '1.', '.0', '1.5', '1.0.0', '-1', '1 1', '٣']) {
    expect(parsed(`ttl_days=${encodeURIComponent(days)}`)).toEqual({ value: { ttl_days: days } })
  }
})

test('space around a value is removed, and a link without a scheme gets https://', () => {
  const fields = { long_url: ' a.example/b\n', custom_alias: '\u00a0c ', ttl_days: ' 1' }
  expect(parsed(new URLSearchParams(fields).toString())).toEqual({
    value: { long_url: 'https://a.example/b', custom_alias: 'c', ttl_days: 1 },
  })
})

test.each(['example.com', 'a.example:81/?q', 'www.é.example#x', 'a.example.', 'x.рф/@'])(
  '%s is a link without a scheme',
  (link) => {
    expect(bareLink.test(link)).toBe(true)
  },
)

test.each([
  ...['http://a.example', 'mailto:b@a.example', 'a.example:x', 'b@a.example', 'no link.example'],
  ...['localhost/a', '1.5', '192.0.2.1/a', '/a.example', '//a.example', 'a..example', '.example'],
])('%s gets no scheme', (link) => {
  expect(bareLink.test(link)).toBe(false)
})

test('unknown fields, even empty ones, are kept for the schema to reject', () => {
  expect(parsed('long_url=x&more=&__proto__=1')).toEqual({
    value: Object.fromEntries([
      ['long_url', 'x'],
      ['more', ''],
      ['__proto__', '1'],
    ]),
  })
})

test('a duplicate field is a fault of that field, and the entered values are kept', () => {
  const form = 'custom_alias=a&long_url=x&custom_alias=b'
  expect(errorsOf(form)).toEqual([
    { pointer: '/custom_alias', code: 'duplicate', detail: 'must not be given more than once' },
  ])
  expect(parseForm(Buffer.from(form)).entered.long_url).toBe('x')
  expect(errorsOf('a~/=1&a~/=2')?.[0]?.pointer).toBe('/a~0~1')
})

test('bytes and escapes that are not UTF-8 are one fault of the whole form', () => {
  const malformed = [Buffer.from('long_url=\xff', 'latin1'), 'long_url=%', 'long_url=%FF', '%C3=x']
  for (const form of malformed) {
    expect(errorsOf(form)?.[0]).toMatchObject({ pointer: '', code: 'malformed-form' })
  }
})

test('each fault is shown at its field, the rest above the form', () => {
  const entered = { long_url: '', custom_alias: 'a_long-er1', ttl_days: '' }
  const taken = placeProblem({ name: 'alias-taken', detail: 'It is in use' }, entered)
  expect(taken.faults).toEqual({ custom_alias: 'It is in use' })
  expect(taken.suggestion).toMatch(/^a_long-[0-9a-f]{2}$/)
  const errors = [
    { pointer: '/ttl_days', code: 'x', detail: 'must be this' },
    { pointer: '/ttl_days', code: 'x', detail: 'must be that' },
  ]
  expect(placeProblem({ name: 'invalid-request', detail: 'd', errors }, entered)).toEqual({
    faults: { ttl_days: 'The number of days must be this' },
  })
  const unknown = [{ pointer: '/more', code: 'x', detail: 'is unknown' }]
  expect(
    placeProblem({ name: 'invalid-request', detail: 'more is unknown', errors: unknown }, entered),
  ).toEqual({ faults: {}, message: 'more is unknown' })
})
