// The contract of a link store: the guarantees of src/links/link-store.ts as tests. Independent of
// the stores, which link-store.test.ts lists.
import { describe, expect, test } from '@jest/globals'
import type { Link } from '../../src/links/link.ts'
import type { LinkStore, ScannedStore, SweptStore } from '../../src/links/link-store.ts'
import { defineScanTests } from './link-scan.ts'
import { openCase } from './open-case.ts'
import { freshCode, sampleLink } from './sample-link.ts'

/** An open store. `swept` is the same store if it does not expire records by itself. */
interface OpenedLinkStore {
  readonly links: LinkStore & ScannedStore
  readonly swept?: SweptStore
  /** The token of a stored code, if the store orders its records by tokens. */
  readonly tokenOf?: (code: string) => Promise<unknown>
  /**
   * If writes may be delayed: the same links over another connection, which is lost after its first
   * write; `deliver` delivers that write.
   */
  readonly openDelayed?: () => { readonly links: LinkStore; readonly deliver: () => Promise<void> }
  readonly close: () => Promise<void>
}

/** A store that the contract is run on. */
export interface LinkStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedLinkStore>
}

type Opened = () => OpenedLinkStore

/** Defines the tests of one store. */
export function defineLinkStoreTests({ name, open }: LinkStoreCase): void {
  describe(name, () => {
    const opened = openCase({ name, open })
    defineInsertTests(opened)
    defineColumnTests(opened)
    defineDisableTests(opened)
    defineEraseTests(opened)
    defineDelayedWriteTests(opened)
    defineSweepTests(opened)
    defineScanTests(opened)
  })
}

async function insertSample(opened: Opened, change: Partial<Link> = {}): Promise<Link> {
  const link = sampleLink(change)
  expect(await opened().links.insertIfAbsent(link)).toBe(link.writerId)
  return link
}

async function expectStored(opened: Opened, link: Link): Promise<void> {
  expect(await opened().links.find(link.code)).toEqual(link)
  expect(await opened().links.readSerial(link.code)).toEqual(link)
}

function defineInsertTests(opened: Opened): void {
  test('insertIfAbsent() stores a link that both reads return', async () => {
    await expectStored(opened, await insertSample(opened))
  })

  test('an unknown code reads as undefined', async () => {
    const code = freshCode()
    expect(await opened().links.find(code)).toBeUndefined()
    expect(await opened().links.readSerial(code)).toBeUndefined()
  })

  test('insertIfAbsent() of a used code returns its writer and changes nothing', async () => {
    const first = await insertSample(opened)
    const second = sampleLink({ code: first.code, longUrl: 'https://example.org/other' })
    expect(await opened().links.insertIfAbsent(second)).toBe(first.writerId)
    await expectStored(opened, first)
  })

  test('a retried insertIfAbsent() returns its own writer', async () => {
    const link = await insertSample(opened)
    expect(await opened().links.insertIfAbsent(link)).toBe(link.writerId)
    await expectStored(opened, link)
  })

  test('one of 64 concurrent claims of a code wins, and all return its writer', async () => {
    const code = freshCode()
    const claims = Array.from({ length: 64 }, (_, i) =>
      sampleLink({ code, longUrl: `https://example.com/${String(i)}` }),
    )
    const result = await Promise.all(claims.map((link) => opened().links.insertIfAbsent(link)))
    const winners = claims.filter((link, i) => result[i] === link.writerId)
    expect(new Set(result).size).toBe(1)
    expect(winners).toHaveLength(1)
    expect(await opened().links.readSerial(code)).toEqual(winners[0])
  })

  test('codes are case-sensitive', async () => {
    const lower = await insertSample(opened, { code: `${freshCode()}a` })
    const upper = await insertSample(opened, { code: `${lower.code.slice(0, -1)}A` })
    await expectStored(opened, lower)
    await expectStored(opened, upper)
  })
}

function defineColumnTests(opened: Opened): void {
  const cases: readonly [string, Partial<Link>][] = [
    ['no optional column', {}],
    [
      'every column',
      { expiresAtMs: 4_102_444_800_001, creatorId: 1n, disabledAtMs: 1_790_000_000_999 },
    ],
    ['the largest creator', { creatorId: 2n ** 63n - 1n }],
    ['the smallest creator', { creatorId: -(2n ** 63n) }],
    ['a negative creator', { creatorId: -1n }],
    ['a creator beyond what a double holds', { creatorId: 2n ** 53n + 1n }],
    ['a target of 2,048 characters', { longUrl: `https://example.com/${'x'.repeat(2028)}` }],
    ['a target with quotes and escapes', { longUrl: `https://example.com/'%00";--\\?:code` }],
    ['no target', { longUrl: null, deletedAtMs: 1_790_000_000_456 }],
    [
      'the largest times',
      { createdAtMs: 8_640_000_000_000_000, expiresAtMs: 8_640_000_000_000_000 },
    ],
  ]
  test.each(cases)('a link is read as stored: %s', async (_, change) => {
    await expectStored(opened, await insertSample(opened, change))
  })
}

function defineDisableTests(opened: Opened): void {
  test('setDisabled() disables, returns the record, and keeps the first time', async () => {
    const link = await insertSample(opened, { creatorId: 7n, expiresAtMs: 1_890_000_000_000 })
    const { links } = opened()
    const disabled = { ...link, disabledAtMs: 1_790_000_001_000 }
    const change = { code: link.code, disabledAtMs: 1_790_000_001_000 }
    expect(await links.setDisabled(change)).toEqual(disabled)
    expect(await links.setDisabled({ ...change, disabledAtMs: 1_790_000_002_000 })).toEqual(
      disabled,
    )
    await expectStored(opened, disabled)
  })

  test('setDisabled(null) is idempotent, and a later disable has its own time', async () => {
    const link = await insertSample(opened, { disabledAtMs: 1_790_000_001_000 })
    const { links } = opened()
    const enable = { code: link.code, disabledAtMs: null }
    const enabled = { ...link, disabledAtMs: null }
    expect(await links.setDisabled(enable)).toEqual(enabled)
    expect(await links.setDisabled(enable)).toEqual(enabled)
    await expectStored(opened, enabled)
    const disableLater = { code: link.code, disabledAtMs: 1_790_000_003_000 }
    expect(await links.setDisabled(disableLater)).toEqual({ ...link, ...disableLater })
  })

  test('the code of a disabled link stays reserved', async () => {
    const link = await insertSample(opened, { disabledAtMs: 1_790_000_001_000 })
    expect(await opened().links.insertIfAbsent(sampleLink({ code: link.code }))).toBe(link.writerId)
  })

  test('disabling, enabling and erasing an unknown code creates no record', async () => {
    const code = freshCode()
    const { links } = opened()
    expect(await links.setDisabled({ code, disabledAtMs: 1 })).toBeUndefined()
    expect(await links.setDisabled({ code, disabledAtMs: null })).toBeUndefined()
    expect(await links.erase({ code, deletedAtMs: 1 })).toBeUndefined()
    expect(await links.readSerial(code)).toBeUndefined()
  })
}

function defineEraseTests(opened: Opened): void {
  test('erase() removes the target, and keeps code, writer and the first time', async () => {
    const link = await insertSample(opened, { creatorId: 7n, expiresAtMs: 1_890_000_000_000 })
    const { links } = opened()
    const erased = { ...link, longUrl: null, deletedAtMs: 1_790_000_001_000 }
    const change = { code: link.code, deletedAtMs: 1_790_000_001_000 }
    expect(await links.erase(change)).toEqual(erased)
    expect(await links.erase({ ...change, deletedAtMs: 1_790_000_002_000 })).toEqual(erased)
    await expectStored(opened, erased)
  })

  test('the code of an erased link stays reserved, also for its own writer', async () => {
    const link = await insertSample(opened)
    const { links } = opened()
    await links.erase({ code: link.code, deletedAtMs: 1_790_000_001_000 })
    expect(await links.insertIfAbsent(sampleLink({ code: link.code }))).toBe(link.writerId)
    expect(await links.insertIfAbsent(link)).toBe(link.writerId)
    expect((await links.readSerial(link.code))?.longUrl).toBeNull()
  })

  test('disabling or enabling an erased link restores nothing', async () => {
    const link = await insertSample(opened, { disabledAtMs: 1_790_000_000_500 })
    const { links } = opened()
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

/** A delayed write of an earlier, unconfirmed change does not revert a confirmed change. */
function defineDelayedWriteTests(opened: Opened): void {
  const off = { disabledAtMs: 5 }
  test.each<{ what: string; initial: Partial<Link>; delayed: Change; then: readonly Change[] }>([
    { what: 'disabling, after an enabling', initial: {}, delayed: disable, then: [enable] },
    { what: 'disabling, retried', initial: {}, delayed: disable, then: [disable, enable] },
    { what: 'enabling, after a disabling', initial: off, delayed: enable, then: [disable] },
    { what: 'enabling, retried', initial: off, delayed: enable, then: [enable, disable] },
    { what: 'erasure, after an enabling', initial: {}, delayed: erase, then: [enable] },
    { what: 'erasure, after a disabling', initial: {}, delayed: erase, then: [disable] },
    { what: 'disabling, after an erasure', initial: {}, delayed: disable, then: [erase] },
  ])('a delayed write does not revert a later change: $what', async (testCase) => {
    const { links, openDelayed } = opened()
    if (openDelayed === undefined) return // this store has no delayed writes
    const { code } = await insertSample(opened, testCase.initial)
    const connection = openDelayed()
    const unknown = { outcome: 'unknown' }
    await expect(testCase.delayed(connection.links, code)).rejects.toMatchObject(unknown)
    let result: Link | undefined
    for (const change of testCase.then) result = await change(links, code)
    await connection.deliver()
    expect(await links.readSerial(code)).toEqual(result)
  })

  test('a delayed write is applied if no other change precedes it', async () => {
    const { links, openDelayed } = opened()
    if (openDelayed === undefined) return
    const { code } = await insertSample(opened)
    const delayed = openDelayed()
    await expect(disable(delayed.links, code)).rejects.toMatchObject({ outcome: 'unknown' })
    await delayed.deliver()
    expect((await links.readSerial(code))?.disabledAtMs).toBe(1_790_000_000_500)
  })
}

/** Earlier than the links of all other tests, so that a sweep test deletes only its own records. */
const SWEEP_BEFORE_MS = 1_000_000

function defineSweepTests(opened: Opened): void {
  test('deleteExpired() deletes only expired links, and no erased ones', async () => {
    const { links, swept } = opened()
    if (swept === undefined) return // this store's records expire by themselves
    const expired = await insertSample(opened, { expiresAtMs: SWEEP_BEFORE_MS - 1 })
    const disabled = await insertSample(opened, {
      expiresAtMs: SWEEP_BEFORE_MS - 1,
      disabledAtMs: 5,
    })
    const onTheEdge = await insertSample(opened, { expiresAtMs: SWEEP_BEFORE_MS })
    const endless = await insertSample(opened)
    const erased = await insertSample(opened, { expiresAtMs: SWEEP_BEFORE_MS - 1 })
    await links.erase({ code: erased.code, deletedAtMs: SWEEP_BEFORE_MS - 5 })
    expect(await swept.deleteExpired({ beforeMs: SWEEP_BEFORE_MS, max: 100 })).toBe(2)
    expect(await links.readSerial(expired.code)).toBeUndefined()
    expect(await links.find(disabled.code)).toBeUndefined()
    await expectStored(opened, onTheEdge)
    await expectStored(opened, endless)
    expect((await links.find(erased.code))?.writerId).toBe(erased.writerId)
    expect(await swept.deleteExpired({ beforeMs: SWEEP_BEFORE_MS, max: 100 })).toBe(0)
  })

  test('deleteExpired() deletes at most max at a time', async () => {
    const { swept } = opened()
    if (swept === undefined) return
    for (let i = 0; i < 5; i++) await insertSample(opened, { expiresAtMs: 10 })
    const sweep = { beforeMs: 11, max: 2 }
    expect(await swept.deleteExpired(sweep)).toBe(2)
    expect(await swept.deleteExpired(sweep)).toBe(2)
    expect(await swept.deleteExpired(sweep)).toBe(1)
    expect(await swept.deleteExpired(sweep)).toBe(0)
  })

  test('the code of a swept link can be claimed', async () => {
    const { links, swept } = opened()
    if (swept === undefined) return
    const expired = await insertSample(opened, { expiresAtMs: 20 })
    await swept.deleteExpired({ beforeMs: 21, max: 100 })
    const next = sampleLink({ code: expired.code })
    expect(await links.insertIfAbsent(next)).toBe(next.writerId)
  })
}
