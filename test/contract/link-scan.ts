// The contract of a scan: every record exactly once, page by page, also while records are added and
// deleted. Independent of the stores, which link-store.test.ts lists.
import { expect, test } from '@jest/globals'
import type { Link } from '../../src/links/link.ts'
import type { LinkStore, ScannedStore, SweptStore } from '../../src/links/link-store.ts'
import { freshCode, sampleLink } from './sample-link.ts'

type ScannedLinks = LinkStore & ScannedStore

/** An open store. */
interface OpenedScan {
  readonly links: ScannedLinks
  readonly swept?: SweptStore
  /** The token of a stored code, by which Cassandra orders its rows. */
  readonly tokenOf?: (code: string) => Promise<unknown>
}

type Opened = () => OpenedScan

/** Codes with the same token, in the order of their bytes; found by a search. */
const SAME_TOKEN = ['UXDc2Yq--a', 'brpuxmLDFG'] as const

const PAGE_MAX = 100

/** Defines the tests of one store. */
export function defineScanTests(opened: Opened): void {
  test.each([1, 2, 7])('scan() returns every record once, in pages of %i', async (max) => {
    const { links } = opened()
    const stored = await storeSamples(links)
    expectEachOnce(await scanAll(links, { max }), stored)
  })

  test('scan() returns each of two codes that have the same token once', async () => {
    const { links, tokenOf } = opened()
    const [first, second] = SAME_TOKEN
    for (const code of SAME_TOKEN) await links.insertIfAbsent(sampleLink({ code }))
    expect(await tokenOf?.(first)).toEqual(await tokenOf?.(second))
    const codes = codesOf(await scanAll(links, { max: PAGE_MAX }))
    expect(codesOf(await scanAll(links, { max: 1 }))).toEqual(codes)
    for (const code of SAME_TOKEN) {
      const rest = codes.slice(codes.indexOf(code) + 1)
      expect(codesOf(await scanAll(links, { after: code, max: 2 }))).toEqual(rest)
    }
    expect(codes.indexOf(first)).toBeLessThan(codes.indexOf(second))
  })

  test('scan() continues after codes that have no record', async () => {
    const { links } = opened()
    await storeSamples(links)
    const codes = codesOf(await scanAll(links, { max: PAGE_MAX }))
    const sizes = new Set<number>()
    for (const after of ['-', '0', '9zzzzzzzzz', 'A', 'Zz9', '_', 'a', 'mm', 'xY', 'zzzzzzzzzz']) {
      const rest = codesOf(await scanAll(links, { after, max: PAGE_MAX }))
      expect(rest).toEqual(codes.slice(codes.length - rest.length))
      sizes.add(rest.length)
    }
    expect(sizes.size).toBeGreaterThan(1)
  })

  test('scan() returns each earlier record once while records are added', async () => {
    const { links } = opened()
    const stored = await storeSamples(links)
    const onPage = () => links.insertIfAbsent(sampleLink())
    expectEachOnce(await scanAll(links, { max: 5, onPage }), stored)
  })

  test('scan() continues after a record that was deleted since', async () => {
    const { links, swept } = opened()
    if (swept === undefined) return // no record can be deleted at once
    await storeSamples(links)
    const doomed = [10, 20, 30].map((expiresAtMs) => sampleLink({ expiresAtMs }))
    for (const link of doomed) await links.insertIfAbsent(link)
    await storeSamples(links)
    const isDoomed = (code: string) => doomed.some((link) => link.code === code)
    const codes = codesOf(await scanAll(links, { max: PAGE_MAX }))
    const first = codes.findIndex(isDoomed)
    expect(await swept.deleteExpired({ beforeMs: 31, max: PAGE_MAX })).toBe(doomed.length)
    const rest = codesOf(await scanAll(links, { after: codes[first], max: 3 }))
    expect(rest).toEqual(codes.slice(first).filter((code) => !isDoomed(code)))
  })
}

/** Stores records in each state, and returns them as they are stored. */
async function storeSamples(links: ScannedLinks): Promise<Link[]> {
  const states: Partial<Link>[] = [
    {},
    { expiresAtMs: 4_102_444_800_001, creatorId: 2n ** 63n - 1n },
    { creatorId: -1n, longUrl: `https://example.com/'%00";--\\?:code` },
    { disabledAtMs: 1_790_000_000_999 },
    { expiresAtMs: Date.now() - 1000 },
    { expiresAtMs: Date.now() - 1000, disabledAtMs: 1_790_000_000_999 },
    ...Array.from({ length: 4 }, () => ({})),
  ]
  const stored = states.map((state, i) =>
    sampleLink({ createdAtMs: 1_790_000_000_123 - i, ...state }),
  )
  for (const link of stored) await links.insertIfAbsent(link)
  const deleted = sampleLink({ code: `${freshCode()}-` })
  await links.insertIfAbsent(deleted)
  const change = { code: deleted.code, deletedAtMs: 1_790_000_001_000 }
  await links.erase(change)
  return [...stored, { ...deleted, longUrl: null, deletedAtMs: change.deletedAtMs }]
}

/** All records after the code `after`, in pages of `max`. Throws if one is returned twice. */
async function scanAll(
  links: ScannedStore,
  given: { after?: string | undefined; max: number; onPage?: () => Promise<unknown> },
): Promise<Link[]> {
  const { max, onPage } = given
  const scanned = new Map<string, Link>()
  let { after } = given
  for (;;) {
    const page = await links.scan({ after, max })
    expect(page.length).toBeLessThanOrEqual(max)
    for (const link of page) {
      if (scanned.has(link.code)) throw new Error(`scan() returned ${link.code} twice`)
      scanned.set(link.code, link)
    }
    if (page.length < max) return [...scanned.values()]
    after = page.at(-1)?.code
    await onPage?.()
  }
}

/** Other tests of this store have stored further records. */
function expectEachOnce(scanned: readonly Link[], stored: readonly Link[]): void {
  const byCode = new Map(scanned.map((link) => [link.code, link]))
  expect(stored.map(({ code }) => byCode.get(code))).toEqual(stored)
}

function codesOf(links: readonly Link[]): string[] {
  return links.map(({ code }) => code)
}
