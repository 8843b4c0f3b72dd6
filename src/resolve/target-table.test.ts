// A stored target is returned byte for byte or not at all, and the table never exceeds its bounds.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createTargetTable, type CachedTarget } from './target-table.ts'

const big = { linksMax: 2 ** 12, targetBytesMax: 2 ** 20 }

function cachedTargetOf(longUrl: string, change: Partial<CachedTarget> = {}): CachedTarget {
  return { longUrl, expiresAtMs: null, lookedUpMs: 1000, fromMs: 1000, untilMs: 5000, ...change }
}

const characters = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-')
const anyCode = fc
  .array(fc.constantFrom(...characters), { minLength: 1, maxLength: 10 })
  .map((each) => each.join(''))
const anyLink = fc.record<CachedTarget>({
  longUrl: fc
    .array(fc.integer({ min: 0x21, max: 0x7e }), { maxLength: 300 })
    .map((codes) => `https://${String.fromCharCode(...codes)}`),
  expiresAtMs: fc.option(fc.integer({ min: 0, max: 4_000_000_000_000 })),
  lookedUpMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  fromMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  untilMs: fc.double({ min: 0, max: 4_000_000_000_000, noNaN: true }),
  allowedBy: fc.option(fc.nat(), { nil: undefined }),
})
const anyStep = fc.oneof(
  { weight: 5, arbitrary: fc.record({ code: anyCode, link: anyLink }) },
  { weight: 1, arbitrary: fc.record({ code: anyCode }) },
)

describe('a link', () => {
  test('is returned until it is evicted', () => {
    const small = { linksMax: 64, targetBytesMax: 4096 }
    const anySteps = fc.array(anyStep, { maxLength: 200 })
    fc.assert(
      fc.property(anySteps, fc.constantFrom(big, small), (steps, bounds) => {
        const links = createTargetTable(bounds)
        const model = new Map<string, CachedTarget>()
        for (const step of steps) {
          if ('link' in step) {
            links.put(step.code, step.link)
            model.set(step.code, step.link)
            expect(links.get(step.code)).toEqual(step.link)
          } else {
            links.delete(step.code)
            model.delete(step.code)
            expect(links.get(step.code)).toBeUndefined()
          }
        }
        for (const [code, link] of model) {
          const stored = links.get(code)
          if (bounds === big || stored !== undefined) expect(stored).toEqual(link)
        }
      }),
    )
  })

  test('is fresh from fromMs until untilMs', () => {
    const links = createTargetTable(big)
    links.put('code', cachedTargetOf('https://x.example/'))
    expect(links.getFresh('code', 999)).toBeUndefined()
    expect(links.getFresh('code', 1000)?.longUrl).toBe('https://x.example/')
    expect(links.getFresh('code', 4999)).toBeDefined()
    expect(links.getFresh('code', 5000)).toBeUndefined()
    expect(links.get('code')).toBeDefined()
  })

  test.each(['', 'a b', 'ä', 'elevenchars', 'twelve-chars'])(
    'is not stored under %j, which is not a code',
    (code) => {
      const links = createTargetTable(big)
      links.put(code, cachedTargetOf('https://x.example/'))
      expect(links.get(code)).toBeUndefined()
    },
  )

  test.each([big, { linksMax: 8, targetBytesMax: 4096 }])(
    'does not collide with a prefix of its code: %j',
    (of) => {
      const links = createTargetTable(of)
      const codes = ['a', 'aa', 'aaaaa', 'aaaaaa', 'aaaaaaaaaa', 'a0', '0a', '0']
      for (const code of codes) links.put(code, cachedTargetOf(`https://x.example/${code}`))
      for (const code of codes) expect(links.get(code)?.longUrl).toBe(`https://x.example/${code}`)
    },
  )
})

test('allowedBy is kept if it is set on the last target read, before a target is stored', () => {
  const anyStep = fc.record({
    action: fc.constantFrom('read', 'read', 'read', 'allow', 'allow', 'put', 'put', 'delete'),
    at: fc.nat({ max: 199 }),
    back: fc.nat({ max: 2 }),
  })
  const anyBounds = fc.constantFrom(
    { linksMax: 8, targetBytesMax: 4096, codes: 12 }, // evicts links
    { linksMax: 512, targetBytesMax: 2 ** 16, codes: 200 }, // grows
  )
  const anySteps = fc.array(anyStep, { minLength: 300, maxLength: 600 })
  let kept = 0
  fc.assert(
    fc.property(anySteps, anyBounds, (steps, { codes, ...bounds }) => {
      const links = createTargetTable(bounds)
      const allowed = new Map<string, number>()
      /** The last targets read, the newest first. */
      let last: { code: string; link: CachedTarget }[] = []
      let isKept = false
      for (const [i, { action, at, back }] of steps.entries()) {
        const code = `c${(at % codes).toString(36)}`
        if (action === 'read') {
          const link = back === 0 ? links.getFresh(code, 1000) : links.get(code)
          if (link === undefined) continue
          expect([code, link.allowedBy]).toEqual([code, allowed.get(code)])
          if (link.allowedBy !== undefined) kept++
          last = [{ code, link }, ...last.slice(0, 2)]
          isKept = true
        } else if (action === 'allow') {
          const target = last[back]
          if (target === undefined) continue
          target.link.allowedBy = i
          if (isKept && back === 0) allowed.set(target.code, i)
        } else {
          if (action === 'delete') links.delete(code)
          else links.put(code, cachedTargetOf(`https://x.example/${i}`))
          if (action === 'put') isKept = false
          allowed.delete(code)
        }
      }
    }),
  )
  expect(kept).toBeGreaterThan(100)
})

describe('a full table', () => {
  const codeOf = (i: number) => `c${i.toString(36)}`

  test('keeps most of the last links', () => {
    const links = createTargetTable(big)
    for (let i = 0; i < 3 * big.linksMax; i++)
      links.put(codeOf(i), cachedTargetOf(`https://x.example/${i}`))
    const last = Array.from({ length: big.linksMax / 2 }, (_, i) => 3 * big.linksMax - 1 - i)
    const kept = last.filter((i) => links.get(codeOf(i))?.longUrl === `https://x.example/${i}`)
    expect(kept.length).toBeGreaterThan(last.length * 0.9)
  })

  test('evicts the oldest target, unless it is stored repeatedly', () => {
    const links = createTargetTable({ linksMax: 2 ** 12, targetBytesMax: 4096 })
    const target = (i: number) => `https://x.example/${String(i).padStart(82, '0')}`
    for (let i = 0; i < 200; i++) {
      links.put('often', cachedTargetOf(target(0)))
      links.put(codeOf(i), cachedTargetOf(target(i)))
    }
    expect(links.get('often')?.longUrl).toBe(target(0))
    expect(links.get(codeOf(0))).toBeUndefined()
    expect(links.get(codeOf(160))).toBeUndefined()
    expect(links.get(codeOf(199))?.longUrl).toBe(target(199))
    expect(links.get(codeOf(180))?.longUrl).toBe(target(180))
  })
})

describe('compared with a plain Map, with targets of different lengths', () => {
  const bounds = { linksMax: 64, targetBytesMax: 4096 }
  /** Bounds of a table that starts with fewer slots. */
  const growing = { linksMax: 512, targetBytesMax: 2 ** 18 }
  /** The second half of each long code is itself a code. */
  const codes = Array.from({ length: 100 }, (_, i) => `c${i.toString(36)}`).flatMap((code) => [
    code,
    `abcde${code}`,
  ])
  const step = fc.record({
    code: fc.constantFrom(...codes),
    length: fc.oneof(
      fc.integer({ min: 20, max: 300 }),
      fc.constantFrom(3, 64, 1024, 2048, 4095, 4096),
    ),
    action: fc.constantFrom('put', 'put', 'put', 'put', 'delete', 'put same length'),
  })
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
  /** The target of step `i`; targets of 3 or more characters differ between steps. */
  const targetOf = (i: number, length: number) =>
    `${i.toString(36)}.`.repeat(length).slice(0, length)

  /** Runs all steps; after each, every stored code has its last target, complete. */
  const runSteps = (steps: readonly Step[], of = bounds) => {
    const links = createTargetTable(of)
    const model = new Map<string, CachedTarget>()
    steps.forEach(({ code, length, action }, i) => {
      const before = model.get(code)?.longUrl.length ?? length
      if (action === 'delete') {
        links.delete(code)
        model.delete(code)
        expect(links.get(code)).toBeUndefined()
      } else {
        const target = targetOf(i, action === 'put' ? length : before)
        const link = cachedTargetOf(target, { lookedUpMs: i, untilMs: i })
        links.put(code, link)
        model.set(code, link)
        expect(links.get(code)).toEqual(link)
      }
      let storedBytes = 0
      for (const each of codes) {
        const stored = links.get(each)
        if (stored === undefined) continue
        storedBytes += stored.longUrl.length
        if (stored.longUrl !== model.get(each)?.longUrl) expect(stored).toEqual(model.get(each))
      }
      expect(storedBytes).toBeLessThanOrEqual(of.targetBytesMax)
    })
    return { links, model }
  }

  test('each target is complete or absent, even after the ring has wrapped around', () => {
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 100, maxLength: 300 }),
        fc.constantFrom(bounds, growing),
        (steps, either) => {
          runSteps(steps, either)
        },
      ),
      { numRuns: 25 },
    )
  })

  test('a target that is stored repeatedly evicts no other', () => {
    const links = createTargetTable({ linksMax: 16, targetBytesMax: 4096 })
    links.put('first', cachedTargetOf('https://x.example/')) // in slot 0
    links.put('kept', cachedTargetOf('https://kept/'))
    for (let i = 0; i < 1000; i++) links.put('first', cachedTargetOf('https://y.example/'))
    expect(links.get('kept')).toEqual(cachedTargetOf('https://kept/'))
    expect(links.getFresh('first', 1000)?.longUrl).toBe('https://y.example/')
  })

  test('a target that fills the whole ring evicts all others', () => {
    const { links } = runSteps([
      { code: 'c1', length: 2048, action: 'put' },
      { code: 'c2', length: 2048, action: 'put' },
    ])
    expect([links.get('c1'), links.get('c2')]).not.toContain(undefined)
    links.put('c3', cachedTargetOf('x'))
    expect([links.get('c1'), links.get('c2')?.longUrl.length]).toEqual([undefined, 2048])
    links.put('c4', cachedTargetOf(targetOf(4, 4096)))
    expect(links.get('c4')?.longUrl).toBe(targetOf(4, 4096))
    expect([links.get('c2'), links.get('c3')]).toEqual([undefined, undefined])
  })

  test('a target of the maximum length is stored, a longer one is not', () => {
    const links = createTargetTable({ linksMax: 64, targetBytesMax: 2 ** 17 })
    links.put('longest', cachedTargetOf('x'.repeat(0xffff)))
    links.put('longer', cachedTargetOf('x'.repeat(0x10000)))
    expect(links.get('longest')?.longUrl).toHaveLength(0xffff)
    expect(links.get('longer')).toBeUndefined()
  })

  test.each([
    ['larger than the ring', 4097, bounds],
    ['longer than the maximum', 0x10000, big],
  ])('a target that is %s only removes the previous target of its code', (_, length, of) => {
    const links = createTargetTable(of)
    links.put('code', cachedTargetOf('https://x.example/'))
    links.put('code', cachedTargetOf('x'.repeat(length)))
    expect(links.get('code')).toBeUndefined() // not even truncated
  })

  test.each([64, 128, 4096])('%d links, stored while the table grew, can be deleted', (count) => {
    const links = createTargetTable({ linksMax: 2 ** 15, targetBytesMax: 2 ** 20 })
    const all = Array.from({ length: count }, (_, i) => `g${i.toString(36)}`)
    for (const code of all) links.put(code, cachedTargetOf(`https://x.example/${code}`))
    for (const code of all) expect(links.get(code)?.longUrl).toBe(`https://x.example/${code}`)
    for (const code of all) {
      links.delete(code)
      expect(links.get(code)).toBeUndefined()
    }
    for (const code of all) expect(links.get(code)).toBeUndefined()
  })

  test('a deleted code leaves nothing behind when the table grows', () => {
    const links = createTargetTable({ linksMax: 2 ** 12, targetBytesMax: 2 ** 20 })
    const deleted = Array.from({ length: 40 }, (_, i) => `abcde${String(i + 10)}`)
    for (const code of deleted) links.put(code, cachedTargetOf(`https://x.example/${code}`))
    for (const code of deleted) links.delete(code)
    for (let i = 0; i < 1000; i++) links.put(`g${String(i)}`, cachedTargetOf('https://y.example/'))
    const halves = deleted.map((code) => code.slice(5))
    for (const code of [...deleted, ...halves]) expect(links.get(code)).toBeUndefined()
  })

  test('in a full table every slot can be deleted, including slot 0', () => {
    const links = createTargetTable({ linksMax: 16, targetBytesMax: 4096 })
    const all = codes.slice(0, 16)
    for (const code of all) links.put(code, cachedTargetOf(`https://x.example/${code}`))
    for (const code of all) expect(links.get(code)).toBeDefined()
    links.put('more', cachedTargetOf('https://x.example/more'))
    expect(all.map((code) => links.get(code) === undefined)).toEqual(all.map((_, i) => i === 0))
    for (const code of [...all, 'more']) links.delete(code)
    for (const code of [...all, 'more']) expect(links.get(code)).toBeUndefined()
    for (const code of all) links.put(code, cachedTargetOf(`https://y.example/${code}`))
    for (const code of all) expect(links.get(code)?.longUrl).toBe(`https://y.example/${code}`)
    for (const code of all) links.put(code, cachedTargetOf('x'.repeat(4097))) // too long
    for (const code of all) expect(links.get(code)).toBeUndefined()
  })
})
