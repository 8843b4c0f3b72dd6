// What a form means, byte for byte, and where a problem is told.
import { expect, test } from '@jest/globals'
import { parseForm, placeProblem } from './home-form.ts'

const parsed = (text: string | Buffer) => parseForm(Buffer.from(text)).parsed
const errorsOf = (text: string | Buffer) => {
  const form = parsed(text)
  return 'problem' in form ? form.problem.errors : []
}

test.each(['1', '1.0', '01.000'])('the days %s are 1, as in the API', (text) => {
  expect(parsed(`ttl_days=${text}`)).toEqual({ value: { ttl_days: 1 } })
})

test('empty fields are absent, and days of digits are a number', () => {
  expect(
    parsed('long_url=https%3A%2F%2Fa.example%2F%3Fq%3D%C3%A4+b&custom_alias=&ttl_days=007'),
  ).toEqual({
    value: { long_url: 'https://a.example/?q=ä b', ttl_days: 7 },
  })
})

test('days that are no whole number in digits stay text, which the schema refuses', () => {
  for (const text of ['1e1', '1.', '.0', '1.5', '1.0.0', '-1', ' 1', '٣']) {
    expect(parsed(`ttl_days=${encodeURIComponent(text)}`)).toEqual({ value: { ttl_days: text } })
  }
})

test('unknown fields are kept for the schema to refuse, even empty ones', () => {
  expect(parsed('long_url=x&more=&__proto__=1')).toEqual({
    value: Object.fromEntries([
      ['long_url', 'x'],
      ['more', ''],
      ['__proto__', '1'],
    ]),
  })
})

test('a repeated field is a fault of that field, and what was entered is kept', () => {
  const text = 'custom_alias=a&long_url=x&custom_alias=b'
  expect(errorsOf(text)).toEqual([
    { pointer: '/custom_alias', code: 'repeated', detail: 'must not be given more than once' },
  ])
  expect(parseForm(Buffer.from(text)).entered.long_url).toBe('x')
  expect(errorsOf('a~/=1&a~/=2')?.[0]?.pointer).toBe('/a~0~1')
})

test('bytes and escapes that stand for no text are one fault of the whole form', () => {
  const malformed = [Buffer.from('long_url=\xff', 'latin1'), 'long_url=%', 'long_url=%FF', '%C3=x']
  for (const text of malformed) {
    expect(errorsOf(text)?.[0]).toMatchObject({ pointer: '', code: 'malformed-form' })
  }
})

test('each fault stands beside its field; the rest is told of the whole form', () => {
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
