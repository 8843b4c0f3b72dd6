// Refilling a pool over a store in memory; its faults and races are explored in test/model.
import { expect, test } from '@jest/globals'
import { createPermutation } from '../codes/permutation.ts'
import { mintBlock } from '../codes/block.ts'
import { isReserved } from '../links/reserved.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createMemoryCodeStore } from '../stores/memory/code-store.ts'
import { refillPool } from './refill-pool.ts'

const POOL = 'default'
const permutation = createPermutation(new Uint8Array(32))

async function pool() {
  const codes = createMemoryCodeStore()
  const metrics = createMetrics()
  await codes.insertPoolIfAbsent({ pool: 'other', secretFingerprint: 'f' })
  await codes.insertPoolIfAbsent({ pool: POOL, secretFingerprint: 'f' })
  const ending = new AbortController()
  const deps = { codes, pool: POOL, permutation, secretFingerprint: 'f', metrics }
  return { ...deps, ending, deps: { ...deps, signal: ending.signal } }
}

test('an empty pool is brought to its target, with the blocks that its number says', async () => {
  const { codes, deps, metrics } = await pool()
  const row = await refillPool(deps, { lowWater: 1000, target: 3000 })
  expect(row).toMatchObject({ minted: 3, claimed: 0, poolNumber: 1 })
  let count = 0
  for (const seq of [1, 2, 3]) {
    const minted = mintBlock(permutation, { poolNumber: 1, seq }, isReserved)
    count += minted.length
    expect(await codes.readBlock({ pool: POOL, seq })).toEqual(minted)
  }
  expect(await codes.readBlock({ pool: POOL, seq: 4 })).toBeUndefined()
  const { values } = await metrics.codesMinted.get()
  expect(values).toEqual([{ labels: { pool: POOL }, value: count }])
})

test('a pool at low water is left alone, one below it is filled to the target', async () => {
  const { codes, deps } = await pool()
  const marks = { lowWater: 2000, target: 3000 }
  await refillPool(deps, marks)
  await codes.claimNext({ pool: POOL, from: 0, writerId: 'w' })
  expect(await refillPool(deps, marks)).toMatchObject({ minted: 3, claimed: 1 })
  await codes.claimNext({ pool: POOL, from: 1, writerId: 'w' })
  expect(await refillPool(deps, marks)).toMatchObject({ minted: 5, claimed: 2 })
})

test('the counter is moved every ten blocks', async () => {
  const { codes, deps } = await pool()
  const moves: [number, number][] = []
  const watched = {
    ...codes,
    advanceMinted: (change: { pool: string; from: number; to: number }) => {
      moves.push([change.from, change.to])
      return codes.advanceMinted(change)
    },
  }
  await refillPool({ ...deps, codes: watched }, { lowWater: 1, target: 23_000 })
  expect(moves).toEqual([
    [0, 10],
    [10, 20],
    [20, 23],
  ])
})

test('a pool of another secret, or of none, is refused before anything is written', async () => {
  const { codes, deps } = await pool()
  const marks = { lowWater: 1000, target: 1000 }
  const other = refillPool({ ...deps, secretFingerprint: 'g' }, marks)
  await expect(other).rejects.toThrow(/pool default was first filled with another code secret/)
  await expect(refillPool({ ...deps, pool: 'none' }, marks)).rejects.toThrow(/unknown pool none/)
  expect(await codes.readBlock({ pool: POOL, seq: 1 })).toBeUndefined()
})

test('a process that ends mints no further', async () => {
  const { deps, ending } = await pool()
  ending.abort()
  expect(await refillPool(deps, { lowWater: 1000, target: 9000 })).toMatchObject({ minted: 0 })
})
