// Entries of the link cache: what is written is read back, and no spoilt value is ever a target.
import { describe, expect, test } from '@jest/globals'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { decodeEntry, encodeEntry, encodePermit, type InvalidReason } from './link-cache-entry.ts'

const CODE = 'Ab3_-xyz90'
const expiring = { longUrl: 'https://example.com/a?b=c#d', expiresAtMs: 1_790_000_000_000 }
const entries = [
  ['a target', encodeEntry(CODE, { ...expiring, expiresAtMs: null })],
  ['a target that expires', encodeEntry(CODE, expiring)],
  ['nothing', encodeEntry(CODE, undefined)],
] as const
const kindOf = (code: string, value: string) => decodeEntry(code, value).kind
const invalid = (reason: InvalidReason) => ({ kind: 'invalid', reason })

test('what is written is read back', () => {
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
  expect(decodeEntry(CODE, encodePermit('x'))).toEqual({ kind: 'unknown', permit: undefined })
})

describe.each(entries)('an entry of %s', (_, whole) => {
  test('is invalid at every shorter length, and with anything after it', () => {
    for (let length = 0; length < whole.length; length++) {
      expect(kindOf(CODE, whole.slice(0, length))).toBe('invalid')
    }
    expect(decodeEntry(CODE, `${whole}/`)).toEqual(invalid('length'))
    expect(decodeEntry(CODE, whole.slice(0, -1))).toEqual(invalid('length'))
  })

  test('is invalid with any one bit flipped', () => {
    const bytes = Buffer.from(whole, 'latin1')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const spoilt = Buffer.from(bytes)
      spoilt.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(kindOf(CODE, spoilt.toString('latin1'))).toBe('invalid')
    }
  })

  test('is invalid with any two of its characters swapped', () => {
    for (let one = 0; one < whole.length; one++) {
      for (let other = one + 1; other < whole.length; other++) {
        const signs = Array.from(whole)
        ;[signs[one], signs[other]] = [signs[other] ?? '', signs[one] ?? '']
        const spoilt = signs.join('')
        if (spoilt !== whole) expect(kindOf(CODE, spoilt)).toBe('invalid')
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
  '%j of version 1 is an older entry, not a spoilt one',
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
])('%j is invalid whatever its checksum', (rest) => {
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

test('no value at all makes it throw, or is a target that no redirect may have', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('T', 'N'), (text, kind) => {
      const seen = decodeEntry(CODE, forged(kind, `${CODE} ${text}`))
      if (seen.kind === 'hit') expect(seen.target.longUrl).toMatch(/^https?:\/\/[\x21-\x7e]+$/i)
      expect(decodeEntry(CODE, text).kind).not.toBe('hit')
    }),
  )
})
