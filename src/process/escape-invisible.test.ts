// Strings of unknown origin cannot control a terminal.
import { expect, test } from '@jest/globals'
import { escapeInvisible } from './escape-invisible.ts'

test.each([
  ['\u001b[2J\u0007\r\n\t\u007f', '\\u001b[2J\\u0007\\u000d\\u000a\\u0009\\u007f'],
  ['\u009b31m\u0085', '\\u009b31m\\u0085'],
  ['abc\u202e\u2066\u200b\ufeff\u2028', 'abc\\u202e\\u2066\\u200b\\ufeff\\u2028'],
  ['\u{e0041}', '\\udb40\\udc41'],
  ['é 中 😀 <b> "x"', 'é 中 😀 <b> "x"'],
])('%j', (given, escaped) => {
  expect(escapeInvisible(given)).toBe(escaped)
})

test('JSON with escapes has the same value', () => {
  const value = { details: 'a\u001b\u009b\u202e\u{e0041}\n"\\' }
  const json = escapeInvisible(JSON.stringify(value))
  expect(JSON.parse(json)).toEqual(value)
  expect(json).toMatch(/^[\x20-\x7e]+$/)
})
