// What every shared cache of links must do: the promises of src/links/link-cache.ts as tests. Knows
// no cache; link-cache.test.ts lists them.
import { describe, expect, test } from '@jest/globals'
import type { Target } from '../../src/links/decide-redirect.ts'
import { type LinkCache, NEGATIVE_MS, LEASE_MS } from '../../src/links/link-cache.ts'
import { openCase } from './open-case.ts'
import { freshCode } from './sample-link.ts'

/** An open cache whose time the tests let pass. */
interface OpenedLinkCache {
  readonly cache: LinkCache
  readonly pass: (ms: number) => Promise<void>
  /** Whether time passes of itself too. */
  readonly isTimeReal: boolean
  readonly close: () => Promise<void>
}

/** One member of the list. */
export interface LinkCacheCase {
  readonly name: string
  readonly open: () => Promise<OpenedLinkCache>
}

type Opened = () => OpenedLinkCache

const NOW_MS = 1_790_000_000_000
const HOUR_MS = 3_600_000
const REAL_LEFT_MS_MAX = 5000
const target: Target = { longUrl: 'https://example.com/a?b=c#d', expiresAtMs: null }

/** Defines the tests of one cache. */
export function defineLinkCacheTests({ name, open }: LinkCacheCase): void {
  describe(name, () => {
    const given = openCase({ name, open })
    definePermitTests(given)
    defineEntryTests(given)
    defineLifeTests(given)
  })
}

/** Looks for the first time; gives the lease. */
async function permitFor(given: Opened, code: string): Promise<string> {
  const seen = await given().cache.look(code)
  if (seen.kind !== 'unknown' || seen.lease === undefined) throw new Error('there is no lease')
  return seen.lease
}

async function fill(given: Opened, code: string, found: Target | undefined): Promise<boolean> {
  const lease = await permitFor(given, code)
  return given().cache.fill({ code, lease, target: found, nowMs: NOW_MS })
}

/**
 * How long before its end a life is looked at for the last time: just before it, or so much sooner
 * where time is real that a test which is held up does not come too late.
 */
function leftOf(given: Opened, lifeMs: number): number {
  return given().isTimeReal ? Math.min(lifeMs / 2, REAL_LEFT_MS_MAX) : 1
}

function definePermitTests(given: Opened): void {
  const waits = { kind: 'unknown', lease: undefined }

  test('who looks first gets a lease, who looks next gets none', async () => {
    const code = freshCode()
    await permitFor(given, code)
    expect(await given().cache.look(code)).toEqual(waits)
  })

  test('of 50 who look at once one gets a lease', async () => {
    const code = freshCode()
    const seen = await Promise.all(Array.from({ length: 50 }, () => given().cache.look(code)))
    const leases = seen.flatMap((one) => (one.kind === 'unknown' ? (one.lease ?? []) : ['?']))
    expect(leases).toHaveLength(1)
  })

  test('a lease is good for one entry', async () => {
    const code = freshCode()
    const lease = await permitFor(given, code)
    const entry = { code, lease, nowMs: NOW_MS }
    expect(await given().cache.fill({ ...entry, target })).toBe(true)
    expect(await given().cache.fill({ ...entry, target: undefined })).toBe(false)
    expect(await given().cache.look(code)).toEqual({ kind: 'hit', target })
  })

  test('a lease of another look-up, or of another code, is refused', async () => {
    const [code, other] = [freshCode(), freshCode()]
    const lease = await permitFor(given, other)
    await permitFor(given, code)
    expect(await given().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
    expect(await given().cache.look(code)).toEqual(waits)
  })

  test('forget() ends a lease: what was read before the change is refused', async () => {
    const code = freshCode()
    const lease = await permitFor(given, code)
    await given().cache.forget(code)
    expect(await given().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
    const next = await permitFor(given, code)
    expect(next).not.toBe(lease)
    expect(await given().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
  })

  test('a lease ends by itself after its time, and the next who looks gets one', async () => {
    const code = freshCode()
    const lease = await permitFor(given, code)
    const leftMs = leftOf(given, LEASE_MS)
    await given().pass(LEASE_MS - leftMs)
    expect(await given().cache.look(code)).toEqual(waits)
    await given().pass(leftMs)
    expect(await given().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
    await permitFor(given, code)
  })
}

function defineEntryTests(given: Opened): void {
  test.each<[string, Target]>([
    ['for ever', target],
    ['until it expires', { ...target, expiresAtMs: NOW_MS + 60_000 }],
    ['as long as can be', { longUrl: `https://x/${'~'.repeat(2038)}`, expiresAtMs: null }],
    ['of an upper-case scheme', { ...target, longUrl: 'HTTP://EXAMPLE.com' }],
    ['with signs of every kind', { ...target, longUrl: 'https://x/!"#$%&()*+,-.:;<=>?@[]^_`{|}' }],
  ])('a target is remembered: %s', async (_, found) => {
    const code = freshCode()
    expect(await fill(given, code, found)).toBe(true)
    for (let i = 0; i < 2; i++) {
      expect(await given().cache.look(code)).toEqual({ kind: 'hit', target: found })
    }
  })

  test('that there is nothing is remembered', async () => {
    const code = freshCode()
    expect(await fill(given, code, undefined)).toBe(true)
    expect(await given().cache.look(code)).toEqual({ kind: 'negative' })
  })

  test.each([target, undefined])('forget() removes %j, and may be repeated', async (found) => {
    const code = freshCode()
    await fill(given, code, found)
    await given().cache.forget(code)
    await given().cache.forget(code)
    await permitFor(given, code)
  })

  test('codes that differ in case only are different codes', async () => {
    const code = freshCode()
    await fill(given, `${code}a`, target)
    await permitFor(given, `${code}A`)
  })
}

function defineLifeTests(given: Opened): void {
  test('a target is remembered for about an hour', async () => {
    const codes = Array.from({ length: 40 }, freshCode)
    for (const code of codes) await fill(given, code, target)
    await given().pass(HOUR_MS * 0.89)
    for (const code of codes) expect((await given().cache.look(code)).kind).toBe('hit')
    await given().pass(HOUR_MS * 0.11)
    const kinds = await Promise.all(
      codes.map(async (code) => (await given().cache.look(code)).kind),
    )
    expect(new Set(kinds)).toEqual(new Set(['hit', 'unknown'])) // not all at once
    await given().pass(HOUR_MS * 0.1)
    for (const code of codes) expect((await given().cache.look(code)).kind).toBe('unknown')
  })

  test('one that expires sooner, until then', async () => {
    const [code, lifeMs] = [freshCode(), 30_000]
    await fill(given, code, { ...target, expiresAtMs: NOW_MS + lifeMs })
    const leftMs = leftOf(given, lifeMs)
    await given().pass(lifeMs - leftMs)
    expect((await given().cache.look(code)).kind).toBe('hit')
    await given().pass(leftMs)
    expect((await given().cache.look(code)).kind).toBe('unknown')
  })

  test.each<[string, Target | undefined]>([
    ['that there is nothing', undefined],
    ['a target that has expired', { ...target, expiresAtMs: NOW_MS }],
  ])('%s is remembered for a minute', async (_, found) => {
    const code = freshCode()
    await fill(given, code, found)
    const leftMs = leftOf(given, NEGATIVE_MS)
    await given().pass(NEGATIVE_MS - leftMs)
    expect((await given().cache.look(code)).kind).toBe(found === undefined ? 'negative' : 'hit')
    await given().pass(leftMs)
    expect((await given().cache.look(code)).kind).toBe('unknown')
  })
}
