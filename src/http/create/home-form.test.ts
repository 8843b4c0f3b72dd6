// How a form is parsed, byte for byte, and where a problem is shown.
import { expect, test } from '@jest/globals'
import { bareLink } from '../pages/home-form.ts'
import { de } from '../pages/strings/de.ts'
import { en } from '../pages/strings/en.ts'
import { emptyForm, parseForm, placeProblem } from './home-form.ts'

const nowMs = Date.parse('2026-12-24T18:00:00.001Z')
const parsed = (form: string | Buffer) => parseForm(Buffer.from(form), nowMs).parsed
const errorsOf = (form: string | Buffer) => {
  const result = parsed(form)
  return 'problem' in result ? result.problem.errors : []
}

test.each([
  ['2026-12-25', 1], // 6 hours left: it expires on that date at 18:00
  ['2026-12-26', 2],
  ['2026-12-24', -0],
  ['2026-12-23', -1],
  ['2036-12-22', 3651],
])('a link that expires on %s has %d days, in UTC', (date, days) => {
  const expected = { value: { ttl_days: days } }
  expect(parsed(`ttl_days=date&expires_on=${date}`)).toEqual(expected)
})

test('a date that does not exist becomes NaN, which the schema rejects', () => {
  for (const date of ['', 'tomorrow', '2026-13-01', '2027-02-29', '2027-04-31', '12/25/2026']) {
    const form = `ttl_days=date&expires_on=${encodeURIComponent(date)}`
    expect(parsed(form)).toEqual({ value: { ttl_days: Number.NaN } })
  }
})

test('the last day of February in a leap year is a date', () => {
  expect(parsed('ttl_days=date&expires_on=2028-02-29')).toEqual({ value: { ttl_days: 432 } })
})

test('the date counts only if it is chosen as the lifetime', () => {
  expect(parsed('ttl_days=30&expires_on=2026-12-25')).toEqual({ value: { ttl_days: 30 } })
  expect(parsed('ttl_days=&expires_on=2026-12-25')).toEqual({ value: {} })
})

test('empty fields are absent, and ttl_days in digits is a number', () => {
  expect(
    parsed('long_url=https%3A%2F%2Fa.example%2F%3Fq%3D%C3%A4+b&custom_alias=&ttl_days=007'),
  ).toEqual({
    value: { long_url: 'https://a.example/?q=ä b', ttl_days: 7 },
  })
})

test.each(['1', '1.0', '01.000'])('ttl_days %s is 1, as in the API', (days) => {
  expect(parsed(`ttl_days=${days}`)).toEqual({ value: { ttl_days: 1 } })
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
  expect(parseForm(Buffer.from(form), nowMs).entered.long_url).toBe('x')
  expect(errorsOf('a~/=1&a~/=2')?.[0]?.pointer).toBe('/a~0~1')
})

test('bytes and escapes that are not UTF-8 are one fault of the whole form', () => {
  const malformed = [Buffer.from('long_url=\xff', 'latin1'), 'long_url=%', 'long_url=%FF', '%C3=x']
  for (const form of malformed) {
    expect(errorsOf(form)?.[0]).toMatchObject({ pointer: '', code: 'malformed-form' })
  }
})

test('each fault is shown at its field, the rest above the form', () => {
  const given = { entered: { ...emptyForm, custom_alias: 'a_long-er1' }, strings: en }
  const taken = placeProblem({ name: 'alias-taken', detail: 'd' }, given)
  expect(taken.faults).toEqual({
    custom_alias: 'The alias a_long-er1 is taken by another link: choose another.',
  })
  expect(taken.suggestion).toMatch(/^a_long-[0-9a-f]{2}$/)
  const problem = (pointer: string, code: string) => ({
    name: 'invalid-request' as const,
    detail: 'more is unknown',
    errors: [
      { pointer, code, detail: 'd' },
      { pointer, code: 'required', detail: 'd' },
    ],
  })
  expect(placeProblem(problem('/custom_alias', 'reserved'), given)).toEqual({
    faults: {
      custom_alias: 'The alias a_long-er1 is reserved for the service itself: choose another.',
    },
  })
  expect(placeProblem({ name: 'target-blocked', detail: 'd' }, given)).toEqual({
    faults: { long_url: en.faults['target-blocked'] },
  })
  for (const strings of [en, de]) {
    for (const code of ['unknown-field', 'malformed-form'] as const) {
      const placed = placeProblem(problem('/more', code), { ...given, strings })
      expect(placed).toEqual({ faults: {}, message: strings.messages[code] })
    }
  }
  expect(placeProblem(problem('/more', 'duplicate'), given)).toEqual({
    faults: {},
    message: 'more is unknown',
  })
  for (const [lifetime, control] of [
    ['date', 'expires_on'],
    ['9999', 'ttl_days'],
  ] as const) {
    const entered = { ...emptyForm, ttl_days: lifetime }
    expect(
      placeProblem(problem('/ttl_days', 'out-of-range'), { entered, strings: de }).faults,
    ).toEqual({ [control]: de.faults['out-of-range'] })
  }
})

test('a message about the form is in the language of the page, with the seconds to wait', () => {
  const limited = { name: 'rate-limited', detail: 'd', headers: { 'Retry-After': '7' } } as const
  expect(placeProblem(limited, { entered: emptyForm, strings: de }).message).toContain(
    'warten Sie 7 s,',
  )
})
