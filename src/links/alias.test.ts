// The syntax of codes, the aliases that clients may request, and the code in a path.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { aliasFault, CODE_LENGTH_MAX, isCode, parseCodePath } from './alias.ts'

const CODE_CHARACTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-'
const codes = fc.string({
  unit: fc.constantFrom(...Array.from(CODE_CHARACTERS)),
  minLength: 1,
  maxLength: CODE_LENGTH_MAX,
})

test.each(['a', '0', '_', '-', '----------', 'A1b2C3d4E5', 'aaaaaaa'])('isCode(%j)', (text) => {
  expect(isCode(text)).toBe(true)
})

test.each([
  ...['', 'a b', 'a.b', 'a/b', 'a%41', 'abcdefghijk', 'ä', 'a\n', '\na', 'a\u0000', '😀'],
  ...['é', 'ａ', 'K\u212a', ' a', 'a ', '+', '=', '~'],
])('isCode(%j) is false', (text) => {
  expect(isCode(text)).toBe(false)
})

test('isCode() allows the 64 characters and no other', () => {
  for (let point = 0; point < 0x300; point++) {
    const character = String.fromCodePoint(point)
    expect([character, isCode(character)]).toEqual([character, CODE_CHARACTERS.includes(character)])
  }
})

test.each(['api', 'API', 'v1', 'V99', 'docs', 'Metrics', 'healthz'])('%j is reserved', (alias) => {
  expect(aliasFault(alias)).toBe('reserved')
})

test.each(['', 'a b', 'elevenchars', 'robots.txt', 'a/b'])('%j is malformed', (alias) => {
  expect(aliasFault(alias)).toBe('malformed')
})

test.each(['spring-26', 'apis', '-', '_', 'v', 'v1x', 'xv1', 'Doc'])(
  '%j can be requested',
  (alias) => {
    expect(aliasFault(alias)).toBeUndefined()
  },
)

test('parseCodePath() finds every code, plain and with escaped characters', () => {
  const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, '0')
  fc.assert(
    fc.property(codes, fc.array(fc.boolean(), { minLength: 10 }), (code, escaped) => {
      const path = Array.from(code, (c, i) => (escaped[i] === true ? `%${hex(c)}` : c)).join('')
      expect(parseCodePath(`/${path}`)).toBe(code)
    }),
  )
})

test.each([
  ...[
    '',
    '/',
    'abc',
    '*abc',
    '//abc',
    '/abc/',
    '/a/b',
    '/abc/d',
    '/abcdefghijk',
    '/a b',
    '/ä',
    '/a+b',
  ],
  ...[
    '/%',
    '/%z1',
    '/%zz',
    '/%2',
    '/%C3',
    '/%c3%a4',
    '/a%2Fb',
    '/%2e%2e',
    '/%00',
    '/a%20',
    '/%25%36%31',
  ],
  ...['/%61%61%61%61%61%61%61%61%61%61%61', `/${'%61'.repeat(1000)}`, '/favicon.ico', '/a?b'],
])('parseCodePath(%j) is undefined', (path) => {
  expect(parseCodePath(path)).toBeUndefined()
})

test('parseCodePath() never throws, and finds only codes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const code = parseCodePath(`/${text}`)
      expect(code === undefined || isCode(code)).toBe(true)
    }),
  )
})
