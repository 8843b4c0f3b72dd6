// The contract of a store of code pools: the guarantees of src/codes/code-store.ts as tests.
// Independent of the stores, which code-store.test.ts lists.
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { toBase62 } from '../../src/codes/base62.ts'
import type { CodeStore } from '../../src/codes/code-store.ts'
import type { Pool } from '../../src/codes/pool.ts'
import { openCase } from './open-case.ts'

/** An open store. */
interface OpenedCodeStore {
  readonly codes: CodeStore
  readonly close: () => Promise<void>
}

/** A store that the contract is run on. */
export interface CodeStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedCodeStore>
}

type Opened = () => OpenedCodeStore

const writers = { one: randomUUID(), two: randomUUID() }

/** Defines the tests of one store. */
export function defineCodeStoreTests({ name, open }: CodeStoreCase): void {
  describe(name, () => {
    const opened = openCase({ name, open })
    definePoolTests(opened)
    defineMintTests(opened)
    defineClaimTests(opened)
    defineBlockTests(opened)
  })
}

const sampleCodes = (count: number) => Array.from({ length: count }, (_, i) => toBase62(i * 31_337))

async function newPool(opened: Opened, minted = 0): Promise<Pool> {
  const pool = `pool/${crypto.randomUUID()}`
  const created = await opened().codes.insertPoolIfAbsent({ pool, secretFingerprint: 'f00d' })
  return minted === 0 ? created : opened().codes.advanceMinted({ pool, from: 0, to: minted })
}

function definePoolTests(opened: Opened): void {
  test('a new pool is empty, and a read returns it as created', async () => {
    const created = await newPool(opened)
    expect(created).toMatchObject({
      minted: 0,
      claimed: 0,
      writerId: null,
      secretFingerprint: 'f00d',
    })
    expect(created.poolNumber).toBeGreaterThanOrEqual(0)
    expect(await opened().codes.readPoolSerial(created.pool)).toEqual(created)
  })

  test('an unknown pool reads as undefined', async () => {
    expect(await opened().codes.readPoolSerial('nowhere/pool')).toBeUndefined()
  })

  test('creating an existing pool returns its row, with the first fingerprint', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened, 3)
    const row = await codes.claimNext({ pool, from: 0, writerId: writers.one })
    expect(await codes.insertPoolIfAbsent({ pool, secretFingerprint: 'beef' })).toEqual(row)
    expect(await codes.readPoolSerial(pool)).toEqual(row)
  })

  test('pools that are created concurrently have unique, stable numbers', async () => {
    const created = await Promise.all(Array.from({ length: 8 }, () => newPool(opened)))
    expect(new Set(created.map(({ poolNumber }) => poolNumber)).size).toBe(8)
    for (const row of created) expect(await opened().codes.readPoolSerial(row.pool)).toEqual(row)
  })

  test('creating one pool 16 times concurrently creates one row', async () => {
    const pool = `pool/${crypto.randomUUID()}`
    const rows = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        opened().codes.insertPoolIfAbsent({ pool, secretFingerprint: String(i) }),
      ),
    )
    const stored = await opened().codes.readPoolSerial(pool)
    for (const row of rows) expect(row).toEqual(stored)
  })
}

function defineMintTests(opened: Opened): void {
  test('advanceMinted() from the current number changes only that number', async () => {
    const { codes } = opened()
    const created = await newPool(opened, 2)
    expect(created.minted).toBe(2)
    const moved = await codes.advanceMinted({ pool: created.pool, from: 2, to: 12 })
    expect(moved).toEqual({ ...created, minted: 12 })
    expect(await codes.readPoolSerial(created.pool)).toEqual(moved)
  })

  test('advanceMinted() from another number changes nothing and returns the row', async () => {
    const { codes } = opened()
    const row = await newPool(opened, 2)
    expect(await codes.advanceMinted({ pool: row.pool, from: 1, to: 9 })).toEqual(row)
    expect(await codes.advanceMinted({ pool: row.pool, from: 3, to: 9 })).toEqual(row)
    expect(await codes.readPoolSerial(row.pool)).toEqual(row)
  })

  test('one of several concurrent advances from the same number wins', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened)
    const to = [1, 2, 3, 4, 5, 6, 7, 8]
    const rows = await Promise.all(to.map((n) => codes.advanceMinted({ pool, from: 0, to: n })))
    const stored = await codes.readPoolSerial(pool)
    expect(to).toContain(stored?.minted)
    for (const row of rows) expect(row).toEqual(stored)
  })
}

function defineClaimTests(opened: Opened): void {
  test('claimNext() claims for its writer and changes nothing else', async () => {
    const { codes } = opened()
    const created = await newPool(opened, 2)
    const claimed = await codes.claimNext({ pool: created.pool, from: 0, writerId: writers.one })
    expect(claimed).toEqual({ ...created, claimed: 1, writerId: writers.one })
    expect(await codes.readPoolSerial(created.pool)).toEqual(claimed)
  })

  test('claimNext() from another number changes nothing and returns the row', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened, 3)
    const row = await codes.claimNext({ pool, from: 0, writerId: writers.one })
    expect(await codes.claimNext({ pool, from: 0, writerId: writers.two })).toEqual(row)
    expect(await codes.claimNext({ pool, from: 2, writerId: writers.two })).toEqual(row)
    expect(await codes.readPoolSerial(pool)).toEqual(row)
  })

  test('claimNext() never passes minted', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened, 1)
    const row = await codes.claimNext({ pool, from: 0, writerId: writers.one })
    expect(await codes.claimNext({ pool, from: 1, writerId: writers.two })).toEqual(row)
    const empty = await newPool(opened)
    expect(await codes.claimNext({ pool: empty.pool, from: 0, writerId: writers.one })).toEqual(
      empty,
    )
  })

  test('one of 32 concurrent claims of a block wins, and all return its owner', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened, 5)
    const many = Array.from({ length: 32 }, () => randomUUID())
    const rows = await Promise.all(
      many.map((writerId) => codes.claimNext({ pool, from: 0, writerId })),
    )
    expect(new Set(rows.map(({ writerId }) => writerId)).size).toBe(1)
    expect(rows.every(({ claimed }) => claimed === 1)).toBe(true)
    expect(await codes.readPoolSerial(pool)).toEqual(rows[0])
  })

  test('claims and advances of one pool do not change another', async () => {
    const { codes } = opened()
    const [one, other] = [await newPool(opened, 2), await newPool(opened, 2)]
    await codes.claimNext({ pool: one.pool, from: 0, writerId: writers.one })
    await codes.advanceMinted({ pool: one.pool, from: 2, to: 4 })
    expect(await codes.readPoolSerial(other.pool)).toEqual(other)
  })
}

function defineBlockTests(opened: Opened): void {
  test('a block is read as written, in order', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened)
    const thousand = sampleCodes(1000).reverse()
    await codes.putBlock({ pool, seq: 1, codes: thousand })
    await codes.putBlock({ pool, seq: 2, codes: sampleCodes(1) })
    expect(await codes.readBlock({ pool, seq: 1 })).toEqual(thousand)
    expect(await codes.readBlock({ pool, seq: 2 })).toEqual(sampleCodes(1))
  })

  test('a large block number differs from the next one', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened)
    const seq = 55_000_000
    await codes.putBlock({ pool, seq, codes: sampleCodes(3) })
    expect(await codes.readBlock({ pool, seq })).toEqual(sampleCodes(3))
    expect(await codes.readBlock({ pool, seq: seq + 1 })).toBeUndefined()
  })

  test('writing a block is idempotent', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened)
    const block = { pool, seq: 1, codes: sampleCodes(5) }
    await Promise.all([codes.putBlock(block), codes.putBlock(block)])
    expect(await codes.readBlock(block)).toEqual(block.codes)
  })

  test('deleting a block is idempotent and keeps other blocks', async () => {
    const { codes } = opened()
    const { pool } = await newPool(opened)
    const other = await newPool(opened)
    for (const block of [
      { pool, seq: 1 },
      { pool, seq: 2 },
      { pool: other.pool, seq: 1 },
    ]) {
      await codes.putBlock({ ...block, codes: sampleCodes(2) })
    }
    await codes.deleteBlock({ pool, seq: 1 })
    await codes.deleteBlock({ pool, seq: 1 })
    expect(await codes.readBlock({ pool, seq: 1 })).toBeUndefined()
    expect(await codes.readBlock({ pool, seq: 2 })).toEqual(sampleCodes(2))
    expect(await codes.readBlock({ pool: other.pool, seq: 1 })).toEqual(sampleCodes(2))
  })
}
