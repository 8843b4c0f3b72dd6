// Values of the link cache: what is written is read again, and all else is not believed.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decodeEntry, encodeEntry, encodePermit } from './link-cache-entry.ts'

test('what is written is read again', () => {
  const visible = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)),
    minLength: 1,
    maxLength: 2000,
  })
  const expiresAtMs = fc.option(fc.integer({ min: 0, max: 4_000_000_000_000 }))
  fc.assert(
    fc.property(visible, expiresAtMs, fc.constantFrom('http', 'https'), (rest, ends, scheme) => {
      const target = { longUrl: `${scheme}://${rest}`, expiresAtMs: ends }
      expect(decodeEntry(encodeEntry(target))).toEqual({ kind: 'hit', target })
    }),
  )
  expect(decodeEntry(encodeEntry(undefined))).toEqual({ kind: 'negative' })
  expect(decodeEntry(encodePermit('x'))).toEqual({ kind: 'unknown', permit: undefined })
})

test.each([
  '',
  '1',
  'what is this',
  '2T https://example.com/',
  '1T',
  '1Thttps://example.com/',
  '1T javascript:alert(1)',
  '1T https://example.com/ ',
  '1T https://example.com/\r\nSet-Cookie: a=b',
  '1T https://',
  '1Tsoon https://example.com/',
  '1T-1 https://example.com/',
  '1T9999999999999999 https://example.com/',
  `1T https://example.com/${'a'.repeat(2048)}`,
  '1NN',
])('%j is not believed', (value) => {
  expect(decodeEntry(value)).toEqual({ kind: 'unreadable' })
})

test('no value at all makes it throw or believe what no redirect may say', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const seen = decodeEntry(`1T${text}`)
      if (seen.kind === 'hit') expect(seen.target.longUrl).toMatch(/^https?:\/\/[\x21-\x7e]+$/i)
    }),
  )
})
