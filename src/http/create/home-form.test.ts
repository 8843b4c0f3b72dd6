// How a form is parsed, byte for byte, and where a problem is shown.
import { expect, test } from '@jest/globals'
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
  for (const days of ['1e1', '1.', '.0', '1.5', '1.0.0', '-1', ' 1', '٣']) {
    expect(parsed(`ttl_days=${encodeURIComponent(days)}`)).toEqual({ value: { ttl_days: days } })
  }
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
  const taken = placeProblem({ name: 'alias-taken', detail: 'The alias a is in use' })
  expect(taken).toEqual({ faults: { custom_alias: 'The alias a is in use' } })
  const errors = [
    { pointer: '/ttl_days', code: 'x', detail: 'must be this' },
    { pointer: '/ttl_days', code: 'x', detail: 'must be that' },
  ]
  expect(placeProblem({ name: 'invalid-request', detail: 'd', errors })).toEqual({
    faults: { ttl_days: 'The number of days must be this' },
  })
  const unknown = [{ pointer: '/more', code: 'x', detail: 'is unknown' }]
  expect(
    placeProblem({ name: 'invalid-request', detail: 'more is unknown', errors: unknown }),
  ).toEqual({ faults: {}, message: 'more is unknown' })
})
