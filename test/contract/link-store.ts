// What every store of links must do: the promises of src/links/link-store.ts as tests. Knows no
// store; link-store.test.ts lists them.
import { describe, expect, test } from '@jest/globals'
import type { Link } from '../../src/links/link.ts'
import type { LinkStore, SweptStore } from '../../src/links/link-store.ts'
import { openCase } from './open-case.ts'
import { freshCode, sampleLink } from './sample-link.ts'

/** An open store. `swept` is the same store where it does not expire records by itself. */
interface OpenedLinkStore {
  readonly links: LinkStore
  readonly swept?: SweptStore
  /**
   * Where a write may be long on its way: the same links by another connection, which is gone after
   * its first write; `arrive` lets that write arrive at last.
   */
  readonly openLate?: () => { readonly links: LinkStore; readonly arrive: () => Promise<void> }
  readonly close: () => Promise<void>
}

/** One member of the list. */
export interface LinkStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedLinkStore>
}

type Opened = () => OpenedLinkStore

/** Defines the tests of one store. */
export function defineLinkStoreTests({ name, open }: LinkStoreCase): void {
  describe(name, () => {
    const given = openCase({ name, open })
    defineInsertTests(given)
    defineColumnTests(given)
    defineDisableTests(given)
    defineEraseTests(given)
    defineLateTests(given)
    defineSweepTests(given)
  })
}

async function stored(given: Opened, change: Partial<Link> = {}): Promise<Link> {
  const link = sampleLink(change)
  expect(await given().links.insertIfAbsent(link)).toBe(link.writerId)
  return link
}

async function expectStored(given: Opened, link: Link): Promise<void> {
  expect(await given().links.find(link.code)).toEqual(link)
  expect(await given().links.readSerial(link.code)).toEqual(link)
}

function defineInsertTests(given: Opened): void {
  test('insertIfAbsent() stores a link, which both reads see from then on', async () => {
    await expectStored(given, await stored(given))
  })

  test('an unknown code is found by no read', async () => {
    const code = freshCode()
    expect(await given().links.find(code)).toBeUndefined()
    expect(await given().links.readSerial(code)).toBeUndefined()
  })

  test('insertIfAbsent() on a used code answers its writer and changes nothing', async () => {
    const first = await stored(given)
    const second = sampleLink({ code: first.code, longUrl: 'https://example.org/other' })
    expect(await given().links.insertIfAbsent(second)).toBe(first.writerId)
    await expectStored(given, first)
  })

  test('insertIfAbsent() repeated by its writer answers that writer', async () => {
    const link = await stored(given)
    expect(await given().links.insertIfAbsent(link)).toBe(link.writerId)
    await expectStored(given, link)
  })

  test('of 64 concurrent claims of one code one wins, and all are told which', async () => {
    const code = freshCode()
    const claims = Array.from({ length: 64 }, (_, i) =>
      sampleLink({ code, longUrl: `https://example.com/${String(i)}` }),
    )
    const told = await Promise.all(claims.map((link) => given().links.insertIfAbsent(link)))
    const winners = claims.filter((link, i) => told[i] === link.writerId)
    expect(new Set(told).size).toBe(1)
    expect(winners).toHaveLength(1)
    expect(await given().links.readSerial(code)).toEqual(winners[0])
  })

  test('codes that differ in case only are different codes', async () => {
    const lower = await stored(given, { code: `${freshCode()}a` })
    const upper = await stored(given, { code: `${lower.code.slice(0, -1)}A` })
    await expectStored(given, lower)
    await expectStored(given, upper)
  })
}

function defineColumnTests(given: Opened): void {
  const cases: readonly [string, Partial<Link>][] = [
    ['no optional column', {}],
    [
      'every column',
      { expiresAtMs: 4_102_444_800_001, creatorId: 1n, disabledAtMs: 1_790_000_000_999 },
    ],
    ['the largest creator', { creatorId: 2n ** 63n - 1n }],
    ['the smallest creator', { creatorId: -(2n ** 63n) }],
    ['a creator beyond what a double holds', { creatorId: 2n ** 53n + 1n }],
    ['a target of 2,048 characters', { longUrl: `https://example.com/${'x'.repeat(2028)}` }],
    ['a target with quotes and escapes', { longUrl: `https://example.com/'%00";--\\?:code` }],
    ['no target', { longUrl: null, deletedAtMs: 1_790_000_000_456 }],
    [
      'the largest times',
      { createdAtMs: 8_640_000_000_000_000, expiresAtMs: 8_640_000_000_000_000 },
    ],
  ]
  test.each(cases)('a link comes back whole: %s', async (_, change) => {
    await expectStored(given, await stored(given, change))
  })
}

function defineDisableTests(given: Opened): void {
  test('setDisabled() disables, answers the record, and keeps the first time', async () => {
    const link = await stored(given, { creatorId: 7n, expiresAtMs: 1_890_000_000_000 })
    const { links } = given()
    const disabled = { ...link, disabledAtMs: 1_790_000_001_000 }
    const change = { code: link.code, disabledAtMs: 1_790_000_001_000 }
    expect(await links.setDisabled(change)).toEqual(disabled)
    expect(await links.setDisabled({ ...change, disabledAtMs: 1_790_000_002_000 })).toEqual(
      disabled,
    )
    await expectStored(given, disabled)
  })

  test('setDisabled(null) enables, also twice, and a later disable has its own time', async () => {
    const link = await stored(given, { disabledAtMs: 1_790_000_001_000 })
    const { links } = given()
    const enable = { code: link.code, disabledAtMs: null }
    const enabled = { ...link, disabledAtMs: null }
    expect(await links.setDisabled(enable)).toEqual(enabled)
    expect(await links.setDisabled(enable)).toEqual(enabled)
    await expectStored(given, enabled)
    const again = { code: link.code, disabledAtMs: 1_790_000_003_000 }
    expect(await links.setDisabled(again)).toEqual({ ...link, ...again })
  })

  test("a disabled link's code stays taken", async () => {
    const link = await stored(given, { disabledAtMs: 1_790_000_001_000 })
    expect(await given().links.insertIfAbsent(sampleLink({ code: link.code }))).toBe(link.writerId)
  })

  test('disabling, enabling and erasing an unknown code makes no record', async () => {
    const code = freshCode()
    const { links } = given()
    expect(await links.setDisabled({ code, disabledAtMs: 1 })).toBeUndefined()
    expect(await links.setDisabled({ code, disabledAtMs: null })).toBeUndefined()
    expect(await links.erase({ code, deletedAtMs: 1 })).toBeUndefined()
    expect(await links.readSerial(code)).toBeUndefined()
  })
}

function defineEraseTests(given: Opened): void {
  test('erase() takes the target, keeps code and writer, and keeps its first time', async () => {
    const link = await stored(given, { creatorId: 7n, expiresAtMs: 1_890_000_000_000 })
    const { links } = given()
    const erased = { ...link, longUrl: null, deletedAtMs: 1_790_000_001_000 }
    const change = { code: link.code, deletedAtMs: 1_790_000_001_000 }
    expect(await links.erase(change)).toEqual(erased)
    expect(await links.erase({ ...change, deletedAtMs: 1_790_000_002_000 })).toEqual(erased)
    await expectStored(given, erased)
  })

  test("an erased link's code stays taken, and its own writer is still told so", async () => {
    const link = await stored(given)
    const { links } = given()
    await links.erase({ code: link.code, deletedAtMs: 1_790_000_001_000 })
    expect(await links.insertIfAbsent(sampleLink({ code: link.code }))).toBe(link.writerId)
    expect(await links.insertIfAbsent(link)).toBe(link.writerId)
    expect((await links.readSerial(link.code))?.longUrl).toBeNull()
  })

  test('disabling or enabling an erased link brings nothing back', async () => {
    const link = await stored(given, { disabledAtMs: 1_790_000_000_500 })
    const { links } = given()
    const erased = await links.erase({ code: link.code, deletedAtMs: 1_790_000_001_000 })
    expect(erased?.disabledAtMs).toBe(1_790_000_000_500)
    expect(await links.setDisabled({ code: link.code, disabledAtMs: null })).toEqual(erased)
    expect(await links.setDisabled({ code: link.code, disabledAtMs: 9 })).toEqual(erased)
    expect(await links.find(link.code)).toEqual(erased)
  })
}

type Change = (links: LinkStore, code: string) => Promise<Link | undefined>

const disable: Change = (links, code) =>
  links.setDisabled({ code, disabledAtMs: 1_790_000_000_500 })
const enable: Change = (links, code) => links.setDisabled({ code, disabledAtMs: null })
const erase: Change = (links, code) => links.erase({ code, deletedAtMs: 1_790_000_000_600 })

/** What an operator was told to be done stays so, whatever arrives late of what was given up. */
function defineLateTests(given: Opened): void {
  const off = { disabledAtMs: 5 }
  test.each<{ what: string; begin: Partial<Link>; late: Change; then: readonly Change[] }>([
    { what: 'disabling, after an enabling', begin: {}, late: disable, then: [enable] },
    { what: 'disabling, repeated', begin: {}, late: disable, then: [disable, enable] },
    { what: 'enabling, after a disabling', begin: off, late: enable, then: [disable] },
    { what: 'enabling, repeated', begin: off, late: enable, then: [enable, disable] },
    { what: 'erasure, after an enabling', begin: {}, late: erase, then: [enable] },
    { what: 'erasure, after a disabling', begin: {}, late: erase, then: [disable] },
    { what: 'disabling, after an erasure', begin: {}, late: disable, then: [erase] },
  ])('what arrives late undoes nothing: $what', async ({ begin, late, then }) => {
    const { links, openLate } = given()
    if (openLate === undefined) return // this store's writes are done once they are answered
    const { code } = await stored(given, begin)
    const gone = openLate()
    await expect(late(gone.links, code)).rejects.toMatchObject({ outcome: 'unknown' })
    let told: Link | undefined
    for (const change of then) told = await change(links, code)
    await gone.arrive()
    expect(await links.readSerial(code)).toEqual(told)
  })

  test('what arrives late is done where nothing came between', async () => {
    const { links, openLate } = given()
    if (openLate === undefined) return
    const { code } = await stored(given)
    const gone = openLate()
    await expect(disable(gone.links, code)).rejects.toMatchObject({ outcome: 'unknown' })
    await gone.arrive()
    expect((await links.readSerial(code))?.disabledAtMs).toBe(1_790_000_000_500)
  })
}

/** Times before all other tests' links, so that only a sweep test's own records are swept. */
const LONG_AGO_MS = 1_000_000

function defineSweepTests(given: Opened): void {
  test('deleteEnded() takes the ended, and nothing live, endless or erased', async () => {
    const { links, swept } = given()
    if (swept === undefined) return // this store's records expire by themselves
    const ended = await stored(given, { expiresAtMs: LONG_AGO_MS - 1 })
    const disabled = await stored(given, { expiresAtMs: LONG_AGO_MS - 1, disabledAtMs: 5 })
    const onTheEdge = await stored(given, { expiresAtMs: LONG_AGO_MS })
    const endless = await stored(given)
    const erased = await stored(given, { expiresAtMs: LONG_AGO_MS - 1 })
    await links.erase({ code: erased.code, deletedAtMs: LONG_AGO_MS - 5 })
    expect(await swept.deleteEnded({ beforeMs: LONG_AGO_MS, max: 100 })).toBe(2)
    expect(await links.readSerial(ended.code)).toBeUndefined()
    expect(await links.find(disabled.code)).toBeUndefined()
    await expectStored(given, onTheEdge)
    await expectStored(given, endless)
    expect((await links.find(erased.code))?.writerId).toBe(erased.writerId)
    expect(await swept.deleteEnded({ beforeMs: LONG_AGO_MS, max: 100 })).toBe(0)
  })

  test('deleteEnded() deletes at most max at a time', async () => {
    const { swept } = given()
    if (swept === undefined) return
    for (let i = 0; i < 5; i++) await stored(given, { expiresAtMs: 10 })
    const sweep = { beforeMs: 11, max: 2 }
    expect(await swept.deleteEnded(sweep)).toBe(2)
    expect(await swept.deleteEnded(sweep)).toBe(2)
    expect(await swept.deleteEnded(sweep)).toBe(1)
    expect(await swept.deleteEnded(sweep)).toBe(0)
  })

  test('a swept code can be claimed again', async () => {
    const { links, swept } = given()
    if (swept === undefined) return
    const ended = await stored(given, { expiresAtMs: 20 })
    await swept.deleteEnded({ beforeMs: 21, max: 100 })
    const next = sampleLink({ code: ended.code })
    expect(await links.insertIfAbsent(next)).toBe(next.writerId)
  })
}
