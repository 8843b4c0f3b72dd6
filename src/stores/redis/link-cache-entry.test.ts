// Entries of the link cache: encoding round-trips, and no corrupt value decodes to a target.
import { describe, expect, test } from '@jest/globals'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { decodeEntry, encodeEntry, encodeLease, type InvalidReason } from './link-cache-entry.ts'

const CODE = 'Ab3_-xyz90'
const expiring = { longUrl: 'https://example.com/a?b=c#d', expiresAtMs: 1_790_000_000_000 }
const entries = [
  ['a target', encodeEntry(CODE, { ...expiring, expiresAtMs: null })],
  ['a target that expires', encodeEntry(CODE, expiring)],
  ['a negative result', encodeEntry(CODE, undefined)],
] as const
const kindOf = (code: string, value: string) => decodeEntry(code, value).kind
const invalid = (reason: InvalidReason) => ({ kind: 'invalid', reason })

test('entries round-trip', () => {
  const visible = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)),
    minLength: 1,
    maxLength: 2000,
  })
  const expiresAtMs = fc.option(fc.integer({ min: 0, max: 4_000_000_000_000 }))
  const code = fc.stringMatching(/^[0-9A-Za-z_-]{1,10}$/)
  fc.assert(
    fc.property(code, visible, expiresAtMs, (code, rest, expiresAtMs) => {
      const target = { longUrl: `https://${rest}`, expiresAtMs }
      expect(decodeEntry(code, encodeEntry(code, target))).toEqual({ kind: 'hit', target })
      expect(decodeEntry(code, encodeEntry(code, undefined))).toEqual({ kind: 'negative' })
    }),
  )
  expect(decodeEntry(CODE, encodeLease('x'))).toEqual({ kind: 'unknown', lease: undefined })
})

describe.each(entries)('an entry of %s', (_, whole) => {
  test('is invalid if truncated or extended', () => {
    for (let length = 0; length < whole.length; length++) {
      expect(kindOf(CODE, whole.slice(0, length))).toBe('invalid')
    }
    expect(decodeEntry(CODE, `${whole}/`)).toEqual(invalid('length'))
    expect(decodeEntry(CODE, whole.slice(0, -1))).toEqual(invalid('length'))
  })

  test('is invalid with any single bit flipped', () => {
    const bytes = Buffer.from(whole, 'latin1')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const corrupt = Buffer.from(bytes)
      corrupt.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(kindOf(CODE, corrupt.toString('latin1'))).toBe('invalid')
    }
  })

  test('is invalid with any two characters swapped', () => {
    for (let one = 0; one < whole.length; one++) {
      for (let other = one + 1; other < whole.length; other++) {
        const characters = Array.from(whole)
        ;[characters[one], characters[other]] = [characters[other] ?? '', characters[one] ?? '']
        const corrupt = characters.join('')
        if (corrupt !== whole) expect(kindOf(CODE, corrupt)).toBe('invalid')
      }
    }
  })

  test.each(['Ab3_-xyz91', 'Ab3_-xyz9', 'Ab3_-xyz900', 'ab3_-xyz90', ''])(
    'is invalid for the code %j',
    (code) => {
      expect(decodeEntry(code, whole)).toEqual(invalid('code'))
    },
  )
})

test.each(['1N', '1T https://example.com/', '1T1790000000000 https://example.com/'])(
  '%j of version 1 is an older entry, not a corrupt one',
  (value) => {
    expect(decodeEntry(CODE, value)).toEqual(invalid('version'))
  },
)

/** An entry whose checksum and length are right. */
function forged(kind: string, rest: string): string {
  const checksum = crc32(kind + rest)
    .toString(16)
    .padStart(8, '0')
  return `2${kind}${checksum} ${String(rest.length)} ${rest}`
}

test.each([
  '',
  'https://example.com/',
  ' javascript:alert(1)',
  ' https://example.com/ ',
  ' https://example.com/\r\nSet-Cookie: a=b',
  ' https://',
  'soon https://example.com/',
  '-1 https://example.com/',
  '9999999999999999 https://example.com/',
  ` https://example.com/${'a'.repeat(2048 - 19)}`,
])('%j is invalid even with a correct checksum', (rest) => {
  expect(decodeEntry(CODE, forged('T', `${CODE} ${rest}`))).toEqual(invalid('format'))
})

test('the longest target that may be stored is read, with a checksum that starts with 0', () => {
  const longUrl = `https://example.com/${'a'.repeat(2048 - 20)}`
  const target = { longUrl, expiresAtMs: null }
  expect(decodeEntry(CODE, forged('T', `${CODE}  ${longUrl}`))).toEqual({ kind: 'hit', target })
  const padded = Array.from({ length: 1000 }, (_, i) => `c${String(i)}`).filter((code) =>
    encodeEntry(code, undefined).startsWith('2N0'),
  )
  expect(padded.length).toBeGreaterThan(0)
  for (const code of padded) expect(kindOf(code, encodeEntry(code, undefined))).toBe('negative')
})

test('no value throws or decodes to an invalid target', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('T', 'N'), (value, kind) => {
      const decoded = decodeEntry(CODE, forged(kind, `${CODE} ${value}`))
      if (decoded.kind === 'hit')
        expect(decoded.target.longUrl).toMatch(/^https?:\/\/[\x21-\x7e]+$/i)
      expect(decodeEntry(CODE, value).kind).not.toBe('hit')
    }),
  )
})
