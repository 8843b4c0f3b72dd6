// What was seen is told again, byte for byte, or not at all; and never beyond the bounds.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createStaleLinks, type StaleLink } from './stale-links.ts'

const big = { linksMax: 2 ** 12, targetBytesMax: 2 ** 20 }

function seenOf(longUrl: string, change: Partial<StaleLink> = {}): StaleLink {
  return { longUrl, expiresAtMs: null, seenMs: 1000, fromMs: 1000, untilMs: 5000, ...change }
}

const characters = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-')
const anyCode = fc
  .array(fc.constantFrom(...characters), { minLength: 1, maxLength: 10 })
  .map((each) => each.join(''))
const anySeen = fc.record<StaleLink>({
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
        const links = createStaleLinks(bounds)
        const model = new Map<string, StaleLink>()
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
    const links = createStaleLinks(big)
    links.put('code', seenOf('https://x.example/'))
    expect(links.getFresh('code', 999)).toBeUndefined()
    expect(links.getFresh('code', 1000)?.longUrl).toBe('https://x.example/')
    expect(links.getFresh('code', 4999)).toBeDefined()
    expect(links.getFresh('code', 5000)).toBeUndefined()
    expect(links.get('code')).toBeDefined()
  })

  test.each(['', 'a b', 'ä', 'elevensigns', 'twelve-signs'])(
    'is nothing where %j is no code',
    (code) => {
      const links = createStaleLinks(big)
      links.put(code, seenOf('https://x.example/'))
      expect(links.get(code)).toBeUndefined()
    },
  )

  test.each([big, { linksMax: 8, targetBytesMax: 4096 }])('codes that begin alike: %j', (of) => {
    const links = createStaleLinks(of)
    const alike = ['a', 'aa', 'aaaaa', 'aaaaaa', 'aaaaaaaaaa', 'a0', '0a', '0']
    for (const code of alike) links.put(code, seenOf(`https://x.example/${code}`))
    for (const code of alike) expect(links.get(code)?.longUrl).toBe(`https://x.example/${code}`)
  })
})

describe('the bounds', () => {
  const codeOf = (i: number) => `c${i.toString(36)}`

  test('hold nearly so many links, and the last ones', () => {
    const links = createStaleLinks(big)
    for (let i = 0; i < 3 * big.linksMax; i++)
      links.put(codeOf(i), seenOf(`https://x.example/${i}`))
    const last = Array.from({ length: big.linksMax / 2 }, (_, i) => 3 * big.linksMax - 1 - i)
    const kept = last.filter((i) => links.get(codeOf(i))?.longUrl === `https://x.example/${i}`)
    expect(kept.length).toBeGreaterThan(last.length * 0.9)
  })

  test('of bytes: what was written first goes, unless it is put again', () => {
    const links = createStaleLinks({ linksMax: 2 ** 12, targetBytesMax: 4096 })
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

describe('against a plain Map, with targets of different lengths', () => {
  const bounds = { linksMax: 64, targetBytesMax: 4096 }
  const codes = Array.from({ length: 200 }, (_, i) => `c${i.toString(36)}`)
  const step = fc.record({
    code: fc.constantFrom(...codes),
    length: fc.oneof(
      fc.integer({ min: 20, max: 300 }),
      fc.constantFrom(1, 64, 1024, 2048, 4095, 4096),
    ),
    does: fc.constantFrom('put', 'put', 'put', 'put', 'delete', 'put as long'),
  })
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
  /** Another target for each step, so that no old one passes for the new one. */
  const textOf = (i: number, length: number) => `${i.toString(36)}.`.repeat(length).slice(0, length)

  /** Does all steps; after each, every code that is known has the target last put, whole. */
  const runSteps = (steps: readonly Step[], of = bounds) => {
    const links = createStaleLinks(of)
    const model = new Map<string, StaleLink>()
    steps.forEach(({ code, length, does }, i) => {
      const before = model.get(code)?.longUrl.length ?? length
      if (does === 'delete') {
        links.delete(code)
        model.delete(code)
        expect(links.get(code)).toBeUndefined()
      } else {
        const seen = seenOf(textOf(i, does === 'put' ? length : before), { seenMs: i, untilMs: i })
        links.put(code, seen)
        model.set(code, seen)
        expect(links.get(code)).toEqual(seen)
      }
      let known = 0
      for (const each of codes) {
        const told = links.get(each)
        if (told === undefined) continue
        known += told.longUrl.length
        if (told.longUrl !== model.get(each)?.longUrl) expect(told).toEqual(model.get(each))
      }
      expect(known).toBeLessThanOrEqual(of.targetBytesMax)
    })
    return { links, model }
  }

  test('each target is whole or absent, round and round the ring', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 300 }), (steps) => {
        runSteps(steps)
      }),
      { numRuns: 25 },
    )
  })

  test('a ring that a target fills to its last byte keeps it, and no other', () => {
    const { links } = runSteps([
      { code: 'c1', length: 2048, does: 'put' },
      { code: 'c2', length: 2048, does: 'put' },
    ])
    expect([links.get('c1'), links.get('c2')]).not.toContain(undefined)
    links.put('c3', seenOf('x'))
    expect([links.get('c1'), links.get('c2')?.longUrl.length]).toEqual([undefined, 2048])
    links.put('c4', seenOf(textOf(4, 4096)))
    expect(links.get('c4')?.longUrl).toBe(textOf(4, 4096))
    expect([links.get('c2'), links.get('c3')]).toEqual([undefined, undefined])
  })

  test('a target as long as the ring can number, and none longer', () => {
    const links = createStaleLinks({ linksMax: 64, targetBytesMax: 2 ** 17 })
    links.put('longest', seenOf('x'.repeat(0xffff)))
    links.put('longer', seenOf('x'.repeat(0x10000)))
    expect(links.get('longest')?.longUrl).toHaveLength(0xffff)
    expect(links.get('longer')).toBeUndefined()
  })

  test('a target that would fill more than the ring is not kept cut', () => {
    const links = createStaleLinks(bounds)
    links.put('code', seenOf('short'))
    links.put('code', seenOf('x'.repeat(4097)))
    expect(links.get('code')).toBeUndefined()
  })

  test('what is too long takes the place of what was known: an old target does not stay', () => {
    const links = createStaleLinks(big)
    links.put('code', seenOf('https://x.example/'))
    links.put('code', seenOf('x'.repeat(0x10000)))
    expect(links.get('code')).toBeUndefined()
  })

  test.each([64, 128, 4096])('all that stood before growth to %d can be deleted', (count) => {
    const links = createStaleLinks({ linksMax: 2 ** 15, targetBytesMax: 2 ** 20 })
    const all = Array.from({ length: count }, (_, i) => `g${i.toString(36)}`)
    for (const code of all) links.put(code, seenOf(`https://x.example/${code}`))
    for (const code of all) expect(links.get(code)?.longUrl).toBe(`https://x.example/${code}`)
    for (const code of all) {
      links.delete(code)
      expect(links.get(code)).toBeUndefined()
    }
    for (const code of all) expect(links.get(code)).toBeUndefined()
  })

  test('a table whose places are all taken has each of them invalidated: also place 0', () => {
    const links = createStaleLinks({ linksMax: 8, targetBytesMax: 4096 })
    const eight = codes.slice(0, 8)
    for (const code of eight) links.put(code, seenOf(`https://x.example/${code}`))
    for (const code of eight) expect(links.get(code)).toBeDefined()
    links.put('ninth', seenOf('https://x.example/ninth'))
    expect(eight.map((code) => links.get(code) === undefined)).toEqual(eight.map((_, i) => i === 0))
    for (const code of [...eight, 'ninth']) links.delete(code)
    for (const code of [...eight, 'ninth']) expect(links.get(code)).toBeUndefined()
    for (const code of eight) links.put(code, seenOf(`https://y.example/${code}`))
    for (const code of eight) expect(links.get(code)?.longUrl).toBe(`https://y.example/${code}`)
    for (const code of eight) links.put(code, seenOf('x'.repeat(4097))) // kept of none
    for (const code of eight) expect(links.get(code)).toBeUndefined()
  })
})
