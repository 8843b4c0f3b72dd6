// Refills a pool over a store in memory; test/model explores faults and races.
import { expect, test } from '@jest/globals'
import { createPermutation } from '../codes/permutation.ts'
import { mintBlock } from '../codes/block.ts'
import { isReserved } from '../links/reserved.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createMemoryCodeStore } from '../../test/kit/stores/memory-code-store.ts'
import { OtherSecretError, refillPool } from './refill-pool.ts'

const POOL = 'default'
const permutation = createPermutation(new Uint8Array(32))

async function setUpPool() {
  const codes = createMemoryCodeStore()
  const metrics = createMetrics()
  await codes.insertPoolIfAbsent({ pool: 'other', secretFingerprint: 'f' })
  await codes.insertPoolIfAbsent({ pool: POOL, secretFingerprint: 'f' })
  const stopping = new AbortController()
  const deps = { codes, pool: POOL, permutation, secretFingerprint: 'f', metrics }
  return { ...deps, stopping, deps: { ...deps, signal: stopping.signal } }
}

test('an empty pool is filled to its target, with the blocks of its pool number', async () => {
  const { codes, deps, metrics } = await setUpPool()
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

test('a pool is filled to its target if it is below, not at, its low-water mark', async () => {
  const { codes, deps } = await setUpPool()
  const marks = { lowWater: 2000, target: 3000 }
  await refillPool(deps, marks)
  await codes.claimNext({ pool: POOL, from: 0, writerId: 'w' })
  expect(await refillPool(deps, marks)).toMatchObject({ minted: 3, claimed: 1 })
  await codes.claimNext({ pool: POOL, from: 1, writerId: 'w' })
  expect(await refillPool(deps, marks)).toMatchObject({ minted: 5, claimed: 2 })
})

test('the counter is advanced every ten blocks', async () => {
  const { codes, deps } = await setUpPool()
  const advances: [number, number][] = []
  const observed = {
    ...codes,
    advanceMinted: (change: { pool: string; from: number; to: number }) => {
      advances.push([change.from, change.to])
      return codes.advanceMinted(change)
    },
  }
  await refillPool({ ...deps, codes: observed }, { lowWater: 1, target: 23_000 })
  expect(advances).toEqual([
    [0, 10],
    [10, 20],
    [20, 23],
  ])
})

test('a pool of another secret and an unknown pool are rejected before any write', async () => {
  const { codes, deps } = await setUpPool()
  const marks = { lowWater: 1000, target: 1000 }
  const other = refillPool({ ...deps, secretFingerprint: 'g' }, marks)
  await expect(other).rejects.toBeInstanceOf(OtherSecretError)
  await expect(other).rejects.toThrow(/pool default was created with a different code secret/)
  await expect(refillPool({ ...deps, pool: 'none' }, marks)).rejects.toThrow(/unknown pool none/)
  expect(await codes.readBlock({ pool: POOL, seq: 1 })).toBeUndefined()
})

test('a stopping process generates no codes', async () => {
  const { deps, stopping } = await setUpPool()
  stopping.abort()
  expect(await refillPool(deps, { lowWater: 1000, target: 9000 })).toMatchObject({ minted: 0 })
})

test('each advance is reported with its row; a stop completes the current one only', async () => {
  const { codes, deps, stopping, metrics } = await setUpPool()
  const minted: number[] = []
  const onMinted = (row: { readonly minted: number }) => {
    minted.push(row.minted)
    if (minted.length === 2) stopping.abort()
  }
  const row = await refillPool({ ...deps, onMinted }, { lowWater: 1, target: 30_000 })
  expect([minted, row.minted]).toEqual([[10, 20], 20])
  expect(await codes.readBlock({ pool: POOL, seq: 21 })).toBeUndefined()
  const [counted] = (await metrics.codesMinted.get()).values
  expect(counted?.labels).toEqual({ pool: POOL })
  expect(counted?.value).toBeGreaterThan(19_000)
})
