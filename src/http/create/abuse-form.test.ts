// The validation of a report: which links belong to this service, and the message at each field.
import { describe, expect, test } from '@jest/globals'
import { reportReasons } from '../../links/report.ts'
import { de } from '../pages/strings/de.ts'
import { en } from '../pages/strings/en.ts'
import { parseAbuseForm, reportedCode } from './abuse-form.ts'

const ownHosts = new Set(['cur.tl', 'short.example', '[2001:db8::1]'])
const parse = (form: string | Buffer, strings = en) =>
  parseAbuseForm(Buffer.from(form), { ownHosts, strings })
const valid = { link: 'abc', reason: 'spam', details: '', contact: '' }
const parseFields = (change: Record<string, string>, strings = en) =>
  parse(new URLSearchParams({ ...valid, ...change }).toString(), strings)
const faultsOf = (change: Record<string, string>) => {
  const { parsed } = parseFields(change)
  return 'report' in parsed ? {} : parsed.faults
}

test.each([
  ...['abc', 'https://cur.tl/abc', 'HTTP://CUR.TL/abc', 'cur.tl/abc', 'cur.tl:8080/abc'],
  ...['https://cur.tl./abc', 'short.example/abc?utm=1#x', 'http://[2001:db8::1]:81/abc'],
  ...['https://cur.tl/%61bc', 'https://u:p@cur.tl/abc'],
])('%s is accepted as the code abc', (link) => {
  expect(reportedCode(link, ownHosts)).toBe('abc')
})

test.each([
  ...['', ' ', 'abcdefghijk', 'a b', 'é', 'https://evil.example/abc', 'https://cur.tl.evil/abc'],
  ...['https://cur.tl', 'https://cur.tl/', 'https://cur.tl/abc/', 'https://cur.tl/a/b', '/abc'],
  ...['ftp://cur.tl/abc', 'javascript:abc', 'https://cur.tl/%zz', 'docs', 'Abuse'],
  ...['cur.tl/openapi.json', `https://cur.tl/abc?${'x'.repeat(2048)}`],
])('%j is not accepted as a link or code', (link) => {
  expect(reportedCode(link, ownHosts)).toBeUndefined()
})

test.each(reportReasons)('a form with the reason %s is a report', (reason) => {
  expect(parseFields({ reason })).toEqual({
    entered: { ...valid, reason },
    parsed: { report: { code: 'abc', reason, details: null, contact: null } },
  })
})

test('space around values is removed, and line breaks are LF', () => {
  const fields = { link: ' abc\r\n', details: '\r\n a\r\n\r\nb ', contact: ' a@b.example ' }
  expect(parseFields(fields).parsed).toEqual({
    report: { code: 'abc', reason: 'spam', details: 'a\n\nb', contact: 'a@b.example' },
  })
})

test('every field has its own message', () => {
  const fields = { link: 'x y', reason: 'toString', details: 'a\u0000', contact: 'none' }
  expect(parseFields(fields)).toEqual({
    entered: fields,
    parsed: {
      faults: {
        link: expect.stringMatching(
          /^The link must be a short link of cur\.tl, short\.example or \[/,
        ),
        reason: 'Choose one of the reasons.',
        details: 'The details must not contain control characters.',
        contact: 'Enter an e-mail address of at most 254 characters, or leave the field empty.',
      },
    },
  })
  expect(faultsOf({ link: '' })).toEqual({ link: expect.stringMatching(/^The link is required/) })
})

test('the messages are in the language of the page', () => {
  const link = expect.stringMatching(/^Der Link fehlt: .* von cur\.tl, short\.example oder \[/)
  const details = 'Die Einzelheiten dürfen höchstens 2000 Zeichen lang sein, es sind aber 2001.'
  const { parsed } = parseFields({ link: '', details: 'x'.repeat(2001) }, de)
  expect(parsed).toEqual({ faults: { link, details } })
  expect(parse('more=', de).parsed).toMatchObject({ message: de.abuse.messages.fields })
})

describe('the details', () => {
  test('have at most 2,000 characters after the normalization of line breaks', () => {
    const longest = 'a\r\n'.repeat(999) + 'ab'
    expect(faultsOf({ details: longest })).toEqual({})
    expect(faultsOf({ details: `${longest}c` })).toEqual({
      details: 'The details must have at most 2000 characters: they have 2001.',
    })
  })

  test.each(['\u001b[2J', '\u009b', '\u007f', '\r', '\u0000'])('must not contain %j', (details) => {
    expect(Object.keys(faultsOf({ details: `x${details}x` }))).toEqual(['details'])
  })

  test('may contain tabs, emoji and every writing system', () => {
    const details = '\u0645\u06cc\u200c\u0631\u200f\n\t中 👩\u200d💻 <script>'
    expect(faultsOf({ details })).toEqual({})
  })
})

test.each([
  'a',
  '@',
  'a@',
  '@b',
  'a@b@c',
  'a b@c.example',
  'a@b\u202e.example',
  `${'a'.repeat(253)}@b`,
])('the contact %j is rejected', (contact) => {
  expect(Object.keys(faultsOf({ contact }))).toEqual(['contact'])
})

test('unknown, duplicate and malformed fields are faults of the whole form', () => {
  const message = en.abuse.messages.fields
  for (const form of ['link=abc&reason=spam&more=', 'link=a&link=b&reason=spam', '__proto__=1']) {
    expect(parse(form).parsed).toEqual({ faults: {}, message })
  }
  for (const form of ['link=%FF', 'link=%', Buffer.from('link=\xff', 'latin1')]) {
    expect(parse(form).parsed).toMatchObject({ message: 'The form is not encoded in UTF-8.' })
  }
})
