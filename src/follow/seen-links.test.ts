// What was seen is told again, byte for byte, or not at all; and never beyond the bounds.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createSeenLinks, type SeenLink } from './seen-links.ts'

const big = { linksMax: 2 ** 12, targetBytesMax: 2 ** 20 }

function seenOf(longUrl: string, change: Partial<SeenLink> = {}): SeenLink {
  return { longUrl, expiresAtMs: null, seenMs: 1000, fromMs: 1000, untilMs: 5000, ...change }
}

const characters = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-')
const anyCode = fc
  .array(fc.constantFrom(...characters), { minLength: 1, maxLength: 10 })
  .map((each) => each.join(''))
const anySeen = fc.record<SeenLink>({
  longUrl: fc
    .array(fc.integer({ min: 0x21, max: 0x7e }), { maxLength: 300 })
    .map((codes) => `https://${String.fromCharCode(...codes)}`),
  expiresAtMs: fc.option(fc.integer({ min: 0, max: 4_000_000_000_000 })),
  seenMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  fromMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  untilMs: fc.double({ min: 0, max: 4_000_000_000_000, noNaN: true }),
})
const anyStep = fc.oneof(
  { weight: 5, arbitrary: fc.record({ code: anyCode, seen: anySeen }) },
  { weight: 1, arbitrary: fc.record({ code: anyCode }) },
)

describe('what was put', () => {
  test('is what is told, as long as there is room', () => {
    const small = { linksMax: 64, targetBytesMax: 4096 }
    const few = fc.array(fc.oneof(anyStep, anyStep), { maxLength: 200 })
    fc.assert(
      fc.property(few, fc.constantFrom(big, small), (steps, bounds) => {
        const links = createSeenLinks(bounds)
        const model = new Map<string, SeenLink>()
        for (const step of steps) {
          if ('seen' in step) {
            links.put(step.code, step.seen)
            model.set(step.code, step.seen)
            expect(links.get(step.code)).toEqual(step.seen)
          } else {
            links.delete(step.code)
            model.delete(step.code)
            expect(links.get(step.code)).toBeUndefined()
          }
        }
        for (const [code, seen] of model) {
          const told = links.get(code)
          if (bounds === big || told !== undefined) expect(told).toEqual(seen)
        }
      }),
    )
  })

  test('is fresh from its beginning until its end', () => {
    const links = createSeenLinks(big)
    links.put('code', seenOf('https://x.example/'))
    expect(links.getFresh('code', 999)).toBeUndefined()
    expect(links.getFresh('code', 1000)?.longUrl).toBe('https://x.example/')
    expect(links.getFresh('code', 4999)).toBeDefined()
    expect(links.getFresh('code', 5000)).toBeUndefined()
    expect(links.get('code')).toBeDefined()
  })

  test.each(['', 'a b', 'ä', 'twelve-signs'])('is nothing where %j is no code', (code) => {
    const links = createSeenLinks(big)
    links.put(code, seenOf('https://x.example/'))
    expect(links.get(code)).toBeUndefined()
  })

  test('codes that begin alike are others', () => {
    const links = createSeenLinks(big)
    const alike = ['a', 'aa', 'aaaaa', 'aaaaaa', 'aaaaaaaaaa', 'a0', '0a', '0']
    for (const code of alike) links.put(code, seenOf(`https://x.example/${code}`))
    for (const code of alike) expect(links.get(code)?.longUrl).toBe(`https://x.example/${code}`)
  })
})

describe('the bounds', () => {
  const codeOf = (i: number) => `c${i.toString(36)}`

  test('hold nearly so many links, and the last ones', () => {
    const links = createSeenLinks(big)
    for (let i = 0; i < 3 * big.linksMax; i++)
      links.put(codeOf(i), seenOf(`https://x.example/${i}`))
    const last = Array.from({ length: big.linksMax / 2 }, (_, i) => 3 * big.linksMax - 1 - i)
    const kept = last.filter((i) => links.get(codeOf(i))?.longUrl === `https://x.example/${i}`)
    expect(kept.length).toBeGreaterThan(last.length * 0.9)
  })

  test('of bytes: what was written first goes, unless it is put again', () => {
    const links = createSeenLinks({ linksMax: 2 ** 12, targetBytesMax: 4096 })
    const target = (i: number) => `https://x.example/${String(i).padStart(82, '0')}`
    for (let i = 0; i < 200; i++) {
      links.put('often', seenOf(target(0)))
      links.put(codeOf(i), seenOf(target(i)))
    }
    expect(links.get('often')?.longUrl).toBe(target(0))
    expect(links.get(codeOf(0))).toBeUndefined()
    expect(links.get(codeOf(160))).toBeUndefined()
    expect(links.get(codeOf(199))?.longUrl).toBe(target(199))
    expect(links.get(codeOf(180))?.longUrl).toBe(target(180))
  })
})
