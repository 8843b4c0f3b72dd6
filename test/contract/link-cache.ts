// The contract of a shared link cache: the guarantees of src/links/link-cache.ts as tests.
// Independent of the caches, which link-cache.test.ts lists.
import { describe, expect, test } from '@jest/globals'
import type { Target } from '../../src/links/decide-redirect.ts'
import { type LinkCache, NEGATIVE_MS, LEASE_MS } from '../../src/links/link-cache.ts'
import { openCase } from './open-case.ts'
import { freshCode } from './sample-link.ts'

/** An open cache whose time the tests advance. */
interface OpenedLinkCache {
  readonly cache: LinkCache
  readonly advance: (ms: number) => Promise<void>
  /** Whether real time passes, too. */
  readonly usesRealTime: boolean
  readonly close: () => Promise<void>
}

/** A cache that the contract is run on. */
export interface LinkCacheCase {
  readonly name: string
  readonly open: () => Promise<OpenedLinkCache>
}

type Opened = () => OpenedLinkCache

const NOW_MS = 1_790_000_000_000
const HOUR_MS = 3_600_000
const REAL_MARGIN_MS_MAX = 5000
const target: Target = { longUrl: 'https://example.com/a?b=c#d', expiresAtMs: null }

/** Defines the tests of one cache. */
export function defineLinkCacheTests({ name, open }: LinkCacheCase): void {
  describe(name, () => {
    const opened = openCase({ name, open })
    defineLeaseTests(opened)
    defineEntryTests(opened)
    defineTtlTests(opened)
  })
}

/** Looks a code up for the first time and returns the lease. */
async function acquireLease(opened: Opened, code: string): Promise<string> {
  const result = await opened().cache.lookUp(code)
  if (result.kind !== 'unknown' || result.lease === undefined) throw new Error('no lease')
  return result.lease
}

async function fill(opened: Opened, code: string, found: Target | undefined): Promise<boolean> {
  const lease = await acquireLease(opened, code)
  return opened().cache.fill({ code, lease, target: found, nowMs: NOW_MS })
}

/**
 * How long before the expiry an entry is last verified: 1 ms, or in real time so much earlier that
 * a slow test does not read after the expiry.
 */
function marginOf(opened: Opened, ttlMs: number): number {
  return opened().usesRealTime ? Math.min(ttlMs / 2, REAL_MARGIN_MS_MAX) : 1
}

function defineLeaseTests(opened: Opened): void {
  const leasedByAnother = { kind: 'unknown', lease: undefined }

  test('the first lookup of a code gets a lease, the next one none', async () => {
    const code = freshCode()
    await acquireLease(opened, code)
    expect(await opened().cache.lookUp(code)).toEqual(leasedByAnother)
  })

  test('one of 50 concurrent lookups gets a lease', async () => {
    const code = freshCode()
    const results = await Promise.all(Array.from({ length: 50 }, () => opened().cache.lookUp(code)))
    const leases = results.flatMap((one) => (one.kind === 'unknown' ? (one.lease ?? []) : ['?']))
    expect(leases).toHaveLength(1)
  })

  test('a lease is valid for one fill', async () => {
    const code = freshCode()
    const lease = await acquireLease(opened, code)
    const entry = { code, lease, nowMs: NOW_MS }
    expect(await opened().cache.fill({ ...entry, target })).toBe(true)
    expect(await opened().cache.fill({ ...entry, target: undefined })).toBe(false)
    expect(await opened().cache.lookUp(code)).toEqual({ kind: 'hit', target })
  })

  test('a fill with the lease of another code is rejected', async () => {
    const [code, other] = [freshCode(), freshCode()]
    const lease = await acquireLease(opened, other)
    await acquireLease(opened, code)
    expect(await opened().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
    expect(await opened().cache.lookUp(code)).toEqual(leasedByAnother)
  })

  test('invalidate() revokes a lease: a fill with an outdated target is rejected', async () => {
    const code = freshCode()
    const lease = await acquireLease(opened, code)
    await opened().cache.invalidate(code)
    expect(await opened().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
    const next = await acquireLease(opened, code)
    expect(next).not.toBe(lease)
    expect(await opened().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
  })

  test('a lease expires after LEASE_MS, and the next lookup gets a new one', async () => {
    const code = freshCode()
    const lease = await acquireLease(opened, code)
    const marginMs = marginOf(opened, LEASE_MS)
    await opened().advance(LEASE_MS - marginMs)
    expect(await opened().cache.lookUp(code)).toEqual(leasedByAnother)
    await opened().advance(marginMs)
    expect(await opened().cache.fill({ code, lease, target, nowMs: NOW_MS })).toBe(false)
    await acquireLease(opened, code)
  })
}

function defineEntryTests(opened: Opened): void {
  test.each<[string, Target]>([
    ['without an expiry', target],
    ['with an expiry', { ...target, expiresAtMs: NOW_MS + 60_000 }],
    ['of the maximum length', { longUrl: `https://x/${'~'.repeat(2038)}`, expiresAtMs: null }],
    ['with an upper-case scheme', { ...target, longUrl: 'HTTP://EXAMPLE.com' }],
    [
      'with every punctuation character',
      { ...target, longUrl: 'https://x/!"#$%&()*+,-.:;<=>?@[]^_`{|}' },
    ],
  ])('a target is cached: %s', async (_, found) => {
    const code = freshCode()
    expect(await fill(opened, code, found)).toBe(true)
    for (let i = 0; i < 2; i++) {
      expect(await opened().cache.lookUp(code)).toEqual({ kind: 'hit', target: found })
    }
  })

  test('a miss is cached', async () => {
    const code = freshCode()
    expect(await fill(opened, code, undefined)).toBe(true)
    expect(await opened().cache.lookUp(code)).toEqual({ kind: 'negative' })
  })

  test.each([target, undefined])('invalidate() removes %j, and is idempotent', async (found) => {
    const code = freshCode()
    await fill(opened, code, found)
    await opened().cache.invalidate(code)
    await opened().cache.invalidate(code)
    await acquireLease(opened, code)
  })

  test('codes are case-sensitive', async () => {
    const code = freshCode()
    await fill(opened, `${code}a`, target)
    await acquireLease(opened, `${code}A`)
  })
}

function defineTtlTests(opened: Opened): void {
  test('a target is cached for about an hour', async () => {
    const codes = Array.from({ length: 40 }, freshCode)
    for (const code of codes) await fill(opened, code, target)
    await opened().advance(HOUR_MS * 0.89)
    for (const code of codes) expect((await opened().cache.lookUp(code)).kind).toBe('hit')
    await opened().advance(HOUR_MS * 0.11)
    const kinds = await Promise.all(
      codes.map(async (code) => (await opened().cache.lookUp(code)).kind),
    )
    expect(new Set(kinds)).toEqual(new Set(['hit', 'unknown'])) // TTLs are jittered
    await opened().advance(HOUR_MS * 0.1)
    for (const code of codes) expect((await opened().cache.lookUp(code)).kind).toBe('unknown')
  })

  test('a target that expires sooner is cached until its expiry', async () => {
    const [code, ttlMs] = [freshCode(), 30_000]
    await fill(opened, code, { ...target, expiresAtMs: NOW_MS + ttlMs })
    const marginMs = marginOf(opened, ttlMs)
    await opened().advance(ttlMs - marginMs)
    expect((await opened().cache.lookUp(code)).kind).toBe('hit')
    await opened().advance(marginMs)
    expect((await opened().cache.lookUp(code)).kind).toBe('unknown')
  })

  test.each<[string, Target | undefined]>([
    ['a miss', undefined],
    ['an expired target', { ...target, expiresAtMs: NOW_MS }],
  ])('%s is cached for a minute', async (_, found) => {
    const code = freshCode()
    await fill(opened, code, found)
    const marginMs = marginOf(opened, NEGATIVE_MS)
    await opened().advance(NEGATIVE_MS - marginMs)
    expect((await opened().cache.lookUp(code)).kind).toBe(found === undefined ? 'negative' : 'hit')
    await opened().advance(marginMs)
    expect((await opened().cache.lookUp(code)).kind).toBe('unknown')
  })
}
