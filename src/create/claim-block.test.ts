// Claims of blocks while the store fails, other processes claim, or the process stops. test/model
// explores all orders of these events.
import { describe, expect, test } from '@jest/globals'
import type { CodeStore } from '../codes/code-store.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryCodeStore } from '../../test/kit/stores/memory-code-store.ts'
import { claimBlock } from './claim-block.ts'

const POOL = 'default'
const fail = (outcome: 'not-done' | 'unknown' = 'unknown') =>
  Promise.reject(new StoreError('down', { outcome }))

type ClaimNext = CodeStore['claimNext']

/** A pool of `minted` blocks; `change` replaces methods of its store. */
async function setUp(minted: number, change: (codes: CodeStore) => Partial<CodeStore>) {
  const codes = createMemoryCodeStore()
  await codes.insertPoolIfAbsent({ pool: POOL, secretFingerprint: 'f' })
  for (let seq = 1; seq <= minted; seq++) {
    await codes.putBlock({ pool: POOL, seq, codes: [`code${seq}`] })
  }
  await codes.advanceMinted({ pool: POOL, from: 0, to: minted })
  const stopping = new AbortController()
  const pauses: number[] = []
  const writers: string[] = []
  const changed = { ...codes, ...change(codes) }
  const claimNext: ClaimNext = (claim) => {
    writers.push(claim.writerId)
    return changed.claimNext(claim)
  }
  const claim = () =>
    claimBlock({
      codes: { ...changed, claimNext },
      pool: POOL,
      signal: stopping.signal,
      random: () => 1,
      pause(ms) {
        pauses.push(ms)
        if (pauses.length > 100) throw new Error('the claim never stops')
        return Promise.resolve()
      },
    })
  return { codes, stopping, pauses, writers, claim }
}

/** Replaces the first calls of `claimNext`, in this order. */
const replaceClaims = (...first: readonly ((real: ClaimNext) => ClaimNext)[]) => {
  const left = [...first]
  return (codes: CodeStore): Partial<CodeStore> => {
    const real = codes.claimNext.bind(codes)
    return { claimNext: (claim) => (left.shift()?.(real) ?? real)(claim) }
  }
}
const failBefore = () => () => fail()
const failAfter = (real: ClaimNext) => async (claim: Parameters<ClaimNext>[0]) => {
  await real(claim)
  return fail()
}
/** Another process claims the block. */
const otherClaims = (real: ClaimNext) => (claim: Parameters<ClaimNext>[0]) =>
  real({ ...claim, writerId: 'other' })

describe('a claim of unknown outcome', () => {
  test('that took effect is not sent twice', async () => {
    const { claim, writers, pauses } = await setUp(2, replaceClaims(failAfter))
    expect(await claim()).toEqual({ kind: 'block', seq: 1, codes: ['code1'] })
    expect([writers.length, pauses]).toEqual([1, [20]])
  })

  test('that had no effect is retried with the same id, after growing pauses', async () => {
    const { claim, writers, pauses } = await setUp(2, replaceClaims(failBefore, failBefore))
    expect(await claim()).toEqual({ kind: 'block', seq: 1, codes: ['code1'] })
    expect([writers.length, new Set(writers).size, pauses]).toEqual([3, 1, [20, 40]])
  })

  test('is retried, although a retry is rejected: the first may still take effect', async () => {
    const rejected = () => () => fail('not-done')
    const { claim, writers } = await setUp(2, replaceClaims(failBefore, rejected, rejected))
    expect(await claim()).toMatchObject({ kind: 'block', seq: 1 })
    expect([writers.length, new Set(writers).size]).toEqual([4, 1])
  })

  test('returns empty if the pool is deleted', async () => {
    let reads = 0
    const { claim } = await setUp(2, (codes) => ({
      ...replaceClaims(failBefore)(codes),
      readPoolSerial: (pool) => (reads++ === 0 ? codes.readPoolSerial(pool) : readDeleted()),
    }))
    const readDeleted = () => Promise.resolve(undefined)
    expect(await claim()).toEqual({ kind: 'empty' })
  })
})

test('a block that another process claims is skipped, with another id', async () => {
  const { claim, writers, pauses } = await setUp(3, replaceClaims(otherClaims, otherClaims))
  expect(await claim()).toEqual({ kind: 'block', seq: 3, codes: ['code3'] })
  expect([new Set(writers).size, pauses]).toEqual([3, []])
})

test('returns empty if other processes claim all blocks, or the pool does not exist', async () => {
  const raced = await setUp(1, replaceClaims(otherClaims))
  expect(await raced.claim()).toEqual({ kind: 'empty' })
  const { claim, writers } = await setUp(1, () => ({
    readPoolSerial: () => Promise.resolve(undefined),
  }))
  expect([await claim(), writers]).toEqual([{ kind: 'empty' }, []])
})

describe('a stop of the process ends the claim', () => {
  test.each<[string, keyof CodeStore, number]>([
    ['the pool', 'readPoolSerial', 0],
    ['the claimed block', 'readBlock', 1],
  ])('while it reads %s', async (_, method, claims) => {
    const { claim, stopping, writers } = await setUp(1, () => ({
      [method]: () => {
        stopping.abort()
        return fail()
      },
    }))
    expect([await claim(), writers.length]).toEqual([{ kind: 'stopped' }, claims])
  })

  test('while the outcome of a claim is unknown', async () => {
    const { claim, stopping, writers } = await setUp(1, () => ({
      claimNext() {
        stopping.abort()
        return fail()
      },
    }))
    expect([await claim(), writers.length]).toEqual([{ kind: 'stopped' }, 1])
  })
})

describe('the claimed block', () => {
  test('is returned even if the store cannot delete it', async () => {
    const { claim, codes } = await setUp(1, () => ({ deleteBlock: () => fail() }))
    expect(await claim()).toEqual({ kind: 'block', seq: 1, codes: ['code1'] })
    expect(await codes.readBlock({ pool: POOL, seq: 1 })).toEqual(['code1'])
  })

  test('is read until the store responds', async () => {
    let failures = 3
    const { claim, pauses } = await setUp(1, (codes) => ({
      readBlock: (block) => (failures-- > 0 ? fail('not-done') : codes.readBlock(block)),
    }))
    expect(await claim()).toMatchObject({ kind: 'block', seq: 1 })
    expect(pauses).toEqual([20, 40, 80])
  })

  test('is a defect if the store does not have it', async () => {
    const { claim, codes } = await setUp(2, () => ({}))
    await codes.deleteBlock({ pool: POOL, seq: 1 })
    await expect(claim()).rejects.toThrow('block 1 of pool default is claimed but missing')
  })
})
