// The validation of a report: which links are of this service, and the message at each field.
import { describe, expect, test } from '@jest/globals'
import { reportReasons } from '../../links/report.ts'
import { parseAbuseForm, reportedCode } from './abuse-form.ts'

const ownHosts = new Set(['cur.tl', 'short.example', '[2001:db8::1]'])
const parse = (form: string | Buffer) => parseAbuseForm(Buffer.from(form), ownHosts)
const valid = { link: 'abc', reason: 'spam', details: '', contact: '' }
const parseFields = (change: Record<string, string>) =>
  parse(new URLSearchParams({ ...valid, ...change }).toString())
const faultsOf = (change: Record<string, string>) => {
  const { parsed } = parseFields(change)
  return 'report' in parsed ? {} : parsed.faults
}

test.each([
  ...['abc', 'https://cur.tl/abc', 'HTTP://CUR.TL/abc', 'cur.tl/abc', 'cur.tl:8080/abc'],
  ...['https://cur.tl./abc', 'short.example/abc?utm=1#x', 'http://[2001:db8::1]:81/abc'],
  ...['https://cur.tl/%61bc', 'https://u:p@cur.tl/abc'],
])('%s is the code abc', (link) => {
  expect(reportedCode(link, ownHosts)).toBe('abc')
})

test.each([
  ...['', ' ', 'abcdefghijk', 'a b', 'é', 'https://evil.example/abc', 'https://cur.tl.evil/abc'],
  ...['https://cur.tl', 'https://cur.tl/', 'https://cur.tl/abc/', 'https://cur.tl/a/b', '/abc'],
  ...['ftp://cur.tl/abc', 'javascript:abc', 'https://cur.tl/%zz', 'docs', 'Abuse'],
  ...['cur.tl/openapi.json', `https://cur.tl/abc?${'x'.repeat(2048)}`],
])('%j is no code', (link) => {
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
        link: expect.stringMatching(/^The link must be a short link of cur\.tl or short\.example/),
        reason: 'The reason must be phishing, malware, spam, illegal or other',
        details: expect.stringMatching(/^The details must not contain control characters/),
        contact: expect.stringMatching(/^The contact must be an e-mail address/),
      },
    },
  })
  expect(faultsOf({ link: '' })).toEqual({ link: expect.stringMatching(/^The link is required/) })
})

describe('the details', () => {
  test('have at most 2,000 characters after the normalization of line breaks', () => {
    const longest = 'a\r\n'.repeat(999) + 'ab'
    expect(faultsOf({ details: longest })).toEqual({})
    expect(faultsOf({ details: `${longest}c` })).toEqual({
      details: 'The details must have at most 2000 characters: they have 2001',
    })
  })

  test.each(['\u001b[2J', '\u009b', '\u007f', '\r', '\u0000'])('do not contain %j', (details) => {
    expect(Object.keys(faultsOf({ details: `x${details}x` }))).toEqual(['details'])
  })

  test('may contain tabs, emoji and every script', () => {
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
  const message = 'The fields must be link, reason, details and contact, each once'
  for (const form of ['link=abc&reason=spam&more=', 'link=a&link=b&reason=spam', '__proto__=1']) {
    expect(parse(form).parsed).toEqual({ faults: {}, message })
  }
  for (const form of ['link=%FF', 'link=%', Buffer.from('link=\xff', 'latin1')]) {
    expect(parse(form).parsed).toMatchObject({
      message: 'The body must be a form encoded in UTF-8',
    })
  }
})
