// The codes of a process: each is taken once, blocks are claimed in advance, and the supply reports
// why it has no code. test/model explores the claims themselves.
import { expect, test } from '@jest/globals'
import { toBase62 } from '../codes/base62.ts'
import type { CodeStore } from '../codes/code-store.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryCodeStore } from '../../test/kit/stores/memory-code-store.ts'
import { createCodeSupply, type SupplyDeps } from './code-supply.ts'

const POOL = 'default'
const codesOf = (seq: number) => Array.from({ length: 1000 }, (_, i) => toBase62(seq * 1000 + i))

/** A supply over a memory store with `minted` blocks; `change` replaces methods of the store. */
async function supplyOf(
  minted: number,
  change: (codes: CodeStore) => Partial<CodeStore> = () => ({}),
  given: Pick<SupplyDeps, 'pause' | 'random'> & { readonly hasRefill?: boolean } = {},
) {
  const { hasRefill = true, ...others } = given
  const codes = createMemoryCodeStore()
  await codes.insertPoolIfAbsent({ pool: POOL, secretFingerprint: 'f' })
  const mint = async (from: number, to: number) => {
    for (let seq = from + 1; seq <= to; seq++) {
      await codes.putBlock({ pool: POOL, seq, codes: codesOf(seq) })
    }
    await codes.advanceMinted({ pool: POOL, from, to })
  }
  await mint(0, minted)
  const clock = { monotonicMs: 1_000_000 }
  const stopping = new AbortController()
  const observed = { refillTriggers: 0, errors: [] as unknown[] }
  const metrics = createMetrics()
  const supply = createCodeSupply({
    codes: { ...codes, ...change(codes) },
    pool: POOL,
    signal: stopping.signal,
    pause: () => Promise.resolve(),
    monotonicMs: () => clock.monotonicMs,
    metrics,
    ...(hasRefill && { triggerRefill: () => observed.refillTriggers++ }),
    onError: (error) => observed.errors.push(error),
    ...others,
  })
  const take = async () => supply.take(clock.monotonicMs + 5000)
  const takeMany = async (count: number) => {
    const taken: string[] = []
    while (taken.length < count) {
      const supplied = await take()
      if (supplied.kind !== 'code') throw new Error(`no code: ${supplied.kind}`)
      taken.push(supplied.code)
    }
    return taken
  }
  return { codes, mint, clock, stopping, observed, supply, take, takeMany, metrics }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('codes are taken block by block, in order, each once', async () => {
  const { takeMany } = await supplyOf(3)
  expect(await takeMany(3000)).toEqual([...codesOf(1), ...codesOf(2), ...codesOf(3)])
})

test('the next block is claimed when 200 codes are left, not earlier', async () => {
  const { takeMany, observed } = await supplyOf(3)
  await takeMany(800)
  await settled()
  expect(observed.refillTriggers).toBe(1)
  await takeMany(1)
  await settled()
  expect(observed.refillTriggers).toBe(2)
})

test('500 concurrent takes wait for one claim and return 500 codes', async () => {
  const { take, observed } = await supplyOf(2)
  const taken = await Promise.all(Array.from({ length: 500 }, take))
  const codes = taken.map((supplied) => (supplied.kind === 'code' ? supplied.code : supplied.kind))
  expect(new Set(codes).size).toBe(500)
  expect(codes.every((code) => code.length === 7)).toBe(true)
  expect(observed.refillTriggers).toBe(1)
})

test('takes beyond the codes of a block get codes of the next one', async () => {
  const { take, observed } = await supplyOf(2)
  const taken = await Promise.all(Array.from({ length: 1500 }, take))
  expect(new Set(taken.map((supplied) => JSON.stringify(supplied))).size).toBe(1500)
  expect(observed.refillTriggers).toBe(2)
})

test('an empty pool is reported, re-read after a second, and then used', async () => {
  let reads = 0
  const { take, mint, clock } = await supplyOf(0, (codes) => ({
    readPoolSerial(pool) {
      reads++
      return codes.readPoolSerial(pool)
    },
  }))
  expect(await take()).toEqual({ kind: 'pool-empty' })
  await mint(0, 1)
  expect(await take()).toEqual({ kind: 'pool-empty' })
  clock.monotonicMs += 999
  expect(await take()).toEqual({ kind: 'pool-empty' })
  expect(reads).toBe(1)
  clock.monotonicMs += 1
  expect(await take()).toEqual({ kind: 'code', code: codesOf(1)[0] })
})

test('the deadline of take() uses the monotonic clock', async () => {
  const { supply, clock } = await supplyOf(1, () => ({
    readPoolSerial: () => new Promise(() => undefined),
  }))
  const startMs = performance.now()
  expect(await supply.take(clock.monotonicMs + 50)).toEqual({ kind: 'store-unavailable' })
  expect(performance.now() - startMs).toBeGreaterThan(45)
  expect(performance.now() - startMs).toBeLessThan(5000)
})

test('codes in memory are taken even if the pool is empty', async () => {
  const { takeMany, take } = await supplyOf(1)
  expect(await takeMany(1000)).toEqual(codesOf(1))
  expect(await take()).toEqual({ kind: 'pool-empty' })
})

test('a store that times out is not reported as an empty pool', async () => {
  const { supply, clock } = await supplyOf(1, () => ({
    readPoolSerial: () => new Promise(() => undefined),
  }))
  expect(await supply.take(clock.monotonicMs)).toEqual({ kind: 'store-unavailable' })
})

test('failWaiting() fails the takes that wait for an unavailable store', async () => {
  const hung = Promise.withResolvers<undefined>()
  const { supply, clock } = await supplyOf(1, (codes) => ({
    readPoolSerial: (pool) => hung.promise.then(() => codes.readPoolSerial(pool)),
  }))
  const waiting = Promise.resolve(supply.take(clock.monotonicMs + 60_000))
  supply.failWaiting()
  expect(await waiting).toEqual({ kind: 'store-unavailable' })
  const next = supply.take(clock.monotonicMs + 60_000)
  hung.resolve(undefined)
  expect(await next).toEqual({ kind: 'code', code: codesOf(1)[0] })
})

test('a claim is retried until the store responds', async () => {
  let failures = 50
  const { take } = await supplyOf(1, (codes) => ({
    claimNext: (change) =>
      failures-- > 0
        ? Promise.reject(new StoreError('unavailable', { outcome: 'unknown' }))
        : codes.claimNext(change),
  }))
  expect(await take()).toEqual({ kind: 'code', code: codesOf(1)[0] })
})

test('a stopping process does not wait for the store', async () => {
  const { take, stopping } = await supplyOf(1, () => ({
    readPoolSerial: () => Promise.reject(new StoreError('unavailable', { outcome: 'not-done' })),
  }))
  const taken = take()
  stopping.abort()
  expect(await taken).toEqual({ kind: 'store-unavailable' })
})

test('a defect is reported, fails the waiting takes, and pauses claims for a second', async () => {
  const { take, codes, observed, clock } = await supplyOf(2)
  await codes.deleteBlock({ pool: POOL, seq: 1 })
  await expect(take()).rejects.toThrow(/block 1 of pool default is claimed but missing/)
  expect(observed.errors).toHaveLength(1)
  expect(await take()).toEqual({ kind: 'store-unavailable' })
  clock.monotonicMs += 1000
  expect(await take()).toEqual({ kind: 'code', code: codesOf(2)[0] })
})

test('a claimed block is deleted from the store', async () => {
  const { takeMany, codes } = await supplyOf(2)
  await takeMany(1)
  await settled()
  expect(await codes.readBlock({ pool: POOL, seq: 1 })).toBeUndefined()
  expect(await codes.readBlock({ pool: POOL, seq: 2 })).toBeDefined()
})

test('rejected claims are retried after a second; the pool is not reported as empty', async () => {
  let claims = 0
  const { take, clock, observed } = await supplyOf(1, () => ({
    claimNext() {
      claims++
      return Promise.reject(new StoreError('full', { outcome: 'not-done' }))
    },
  }))
  expect(await take()).toEqual({ kind: 'store-unavailable' })
  clock.monotonicMs += 999
  expect(await take()).toEqual({ kind: 'store-unavailable' })
  expect(claims).toBe(1)
  clock.monotonicMs += 1
  expect(await take()).toEqual({ kind: 'store-unavailable' })
  expect([claims, observed.refillTriggers]).toEqual([2, 0])
})

test('a claim that is rejected after another process took its block fails at once', async () => {
  const outcomes = ['unknown', 'not-done'] as const
  let claims = 0
  const { take } = await supplyOf(2, (codes) => ({
    async claimNext(claim) {
      await codes.claimNext({ ...claim, writerId: `other ${claims}` })
      throw new StoreError('', { outcome: outcomes[claims++] ?? 'not-done' })
    },
  }))
  expect(await take()).toEqual({ kind: 'store-unavailable' })
  expect(claims).toBe(2)
})

test('an empty pool triggers a refill', async () => {
  const { take, observed } = await supplyOf(0)
  await take()
  expect(observed.refillTriggers).toBe(1)
})

test('after an unknown outcome the pauses between claims grow, and are random', async () => {
  const pauses: number[] = []
  let claims = 0
  const { supply, clock, stopping } = await supplyOf(
    1,
    () => ({
      claimNext: () =>
        Promise.reject(new StoreError('', { outcome: claims++ === 0 ? 'unknown' : 'not-done' })),
    }),
    {
      random: () => 0.5,
      pause: (ms) => {
        pauses.push(ms)
        if (pauses.length === 10) stopping.abort()
        return Promise.resolve()
      },
    },
  )
  expect(await supply.take(clock.monotonicMs + 5000)).toEqual({ kind: 'store-unavailable' })
  expect(pauses).toEqual([10, 20, 40, 80, 160, 320, 500, 500, 500, 500])
})

test('each claimed block is counted for its pool; an empty pool counts none', async () => {
  const { take, takeMany, metrics } = await supplyOf(2)
  await takeMany(2000)
  expect(await take()).toEqual({ kind: 'pool-empty' })
  expect((await metrics.blocksClaimed.get()).values).toEqual([{ labels: { pool: POOL }, value: 2 }])
})

test('without a refill to trigger, codes are taken until the pool is empty', async () => {
  const { take, takeMany } = await supplyOf(1, undefined, { hasRefill: false })
  expect(await takeMany(1000)).toHaveLength(1000)
  expect(await take()).toEqual({ kind: 'pool-empty' })
})
