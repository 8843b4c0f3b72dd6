// What every store of code pools must do: the promises of src/codes/code-store.ts as tests. Knows
// no store; code-store.test.ts lists them.
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

/** One member of the list. */
export interface CodeStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedCodeStore>
}

type Opened = () => OpenedCodeStore

const writers = { one: randomUUID(), two: randomUUID() }

/** Defines the tests of one store. */
export function defineCodeStoreTests({ name, open }: CodeStoreCase): void {
  describe(name, () => {
    const given = openCase({ name, open })
    definePoolTests(given)
    defineMintTests(given)
    defineClaimTests(given)
    defineBlockTests(given)
  })
}

const sampleCodes = (count: number) => Array.from({ length: count }, (_, i) => toBase62(i * 31_337))

async function newPool(given: Opened, minted = 0): Promise<Pool> {
  const pool = `pool/${crypto.randomUUID()}`
  const made = await given().codes.insertPoolIfAbsent({ pool, secretFingerprint: 'f00d' })
  return minted === 0 ? made : given().codes.advanceMinted({ pool, from: 0, to: minted })
}

function definePoolTests(given: Opened): void {
  test('a new pool is empty, and is read back as it was made', async () => {
    const made = await newPool(given)
    expect(made).toMatchObject({ minted: 0, claimed: 0, writerId: null, secretFingerprint: 'f00d' })
    expect(made.poolNumber).toBeGreaterThanOrEqual(0)
    expect(await given().codes.readPoolSerial(made.pool)).toEqual(made)
  })

  test('an unknown pool is not there', async () => {
    expect(await given().codes.readPoolSerial('nowhere/pool')).toBeUndefined()
  })

  test('making a pool again answers the row there, with its first fingerprint', async () => {
    const { codes } = given()
    const { pool } = await newPool(given, 3)
    const row = await codes.claimNext({ pool, from: 0, writerId: writers.one })
    expect(await codes.insertPoolIfAbsent({ pool, secretFingerprint: 'beef' })).toEqual(row)
    expect(await codes.readPoolSerial(pool)).toEqual(row)
  })

  test('pools made at once have numbers of their own, and keep them', async () => {
    const made = await Promise.all(Array.from({ length: 8 }, () => newPool(given)))
    expect(new Set(made.map(({ poolNumber }) => poolNumber)).size).toBe(8)
    for (const row of made) expect(await given().codes.readPoolSerial(row.pool)).toEqual(row)
  })

  test('one pool made 16 times at once is one row', async () => {
    const pool = `pool/${crypto.randomUUID()}`
    const rows = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        given().codes.insertPoolIfAbsent({ pool, secretFingerprint: String(i) }),
      ),
    )
    const stood = await given().codes.readPoolSerial(pool)
    for (const row of rows) expect(row).toEqual(stood)
  })
}

function defineMintTests(given: Opened): void {
  test('advanceMinted() from what it is moves it and nothing else', async () => {
    const { codes } = given()
    const made = await newPool(given, 2)
    expect(made.minted).toBe(2)
    const moved = await codes.advanceMinted({ pool: made.pool, from: 2, to: 12 })
    expect(moved).toEqual({ ...made, minted: 12 })
    expect(await codes.readPoolSerial(made.pool)).toEqual(moved)
  })

  test('advanceMinted() from another number is refused and told the row', async () => {
    const { codes } = given()
    const row = await newPool(given, 2)
    expect(await codes.advanceMinted({ pool: row.pool, from: 1, to: 9 })).toEqual(row)
    expect(await codes.advanceMinted({ pool: row.pool, from: 3, to: 9 })).toEqual(row)
    expect(await codes.readPoolSerial(row.pool)).toEqual(row)
  })

  test('of concurrent advances from one number one wins', async () => {
    const { codes } = given()
    const { pool } = await newPool(given)
    const to = [1, 2, 3, 4, 5, 6, 7, 8]
    const rows = await Promise.all(to.map((n) => codes.advanceMinted({ pool, from: 0, to: n })))
    const stood = await codes.readPoolSerial(pool)
    expect(to).toContain(stood?.minted)
    for (const row of rows) expect(row).toEqual(stood)
  })
}

function defineClaimTests(given: Opened): void {
  test('claimNext() claims for its writer and nothing else changes', async () => {
    const { codes } = given()
    const made = await newPool(given, 2)
    const claimed = await codes.claimNext({ pool: made.pool, from: 0, writerId: writers.one })
    expect(claimed).toEqual({ ...made, claimed: 1, writerId: writers.one })
    expect(await codes.readPoolSerial(made.pool)).toEqual(claimed)
  })

  test('claimNext() from another number is refused and told the row', async () => {
    const { codes } = given()
    const { pool } = await newPool(given, 3)
    const row = await codes.claimNext({ pool, from: 0, writerId: writers.one })
    expect(await codes.claimNext({ pool, from: 0, writerId: writers.two })).toEqual(row)
    expect(await codes.claimNext({ pool, from: 2, writerId: writers.two })).toEqual(row)
    expect(await codes.readPoolSerial(pool)).toEqual(row)
  })

  test('claimNext() never passes minted', async () => {
    const { codes } = given()
    const { pool } = await newPool(given, 1)
    const row = await codes.claimNext({ pool, from: 0, writerId: writers.one })
    expect(await codes.claimNext({ pool, from: 1, writerId: writers.two })).toEqual(row)
    const empty = await newPool(given)
    expect(await codes.claimNext({ pool: empty.pool, from: 0, writerId: writers.one })).toEqual(
      empty,
    )
  })

  test('of 32 concurrent claims of one block one owns it, and all are told who', async () => {
    const { codes } = given()
    const { pool } = await newPool(given, 5)
    const many = Array.from({ length: 32 }, () => randomUUID())
    const rows = await Promise.all(
      many.map((writerId) => codes.claimNext({ pool, from: 0, writerId })),
    )
    expect(new Set(rows.map(({ writerId }) => writerId)).size).toBe(1)
    expect(rows.every(({ claimed }) => claimed === 1)).toBe(true)
    expect(await codes.readPoolSerial(pool)).toEqual(rows[0])
  })

  test('claims and advances of one pool do not touch another', async () => {
    const { codes } = given()
    const [one, other] = [await newPool(given, 2), await newPool(given, 2)]
    await codes.claimNext({ pool: one.pool, from: 0, writerId: writers.one })
    await codes.advanceMinted({ pool: one.pool, from: 2, to: 4 })
    expect(await codes.readPoolSerial(other.pool)).toEqual(other)
  })
}

function defineBlockTests(given: Opened): void {
  test('a block comes back as it was put, in order', async () => {
    const { codes } = given()
    const { pool } = await newPool(given)
    const thousand = sampleCodes(1000).reverse()
    await codes.putBlock({ pool, seq: 1, codes: thousand })
    await codes.putBlock({ pool, seq: 2, codes: sampleCodes(1) })
    expect(await codes.readBlock({ pool, seq: 1 })).toEqual(thousand)
    expect(await codes.readBlock({ pool, seq: 2 })).toEqual(sampleCodes(1))
  })

  test('a large block number is told from its neighbours', async () => {
    const { codes } = given()
    const { pool } = await newPool(given)
    const seq = 55_000_000
    await codes.putBlock({ pool, seq, codes: sampleCodes(3) })
    expect(await codes.readBlock({ pool, seq })).toEqual(sampleCodes(3))
    expect(await codes.readBlock({ pool, seq: seq + 1 })).toBeUndefined()
  })

  test('a block may be put again', async () => {
    const { codes } = given()
    const { pool } = await newPool(given)
    const block = { pool, seq: 1, codes: sampleCodes(5) }
    await Promise.all([codes.putBlock(block), codes.putBlock(block)])
    expect(await codes.readBlock(block)).toEqual(block.codes)
  })

  test('a deleted block is gone, once or twice, and others are not', async () => {
    const { codes } = given()
    const { pool } = await newPool(given)
    const other = await newPool(given)
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
