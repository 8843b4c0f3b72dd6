// The lookup behind the memory: which results and errors of the tiers it returns, counts and stores
// in the shared cache. find-link-tiers.test.ts combines it with the memory.
import { describe, expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { targetOf } from '../links/decide-redirect.ts'
import type { CacheEntry, CacheResult } from '../links/link-cache.ts'
import type { Link } from '../links/link.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createLinkFinder } from './find-link.ts'
import { AllTiersUnavailable, createReadTiers, type TierDeps } from './read-tiers.ts'

const NOW_MS = 1_790_000_000_000
const link = sampleLink({ code: 'code' })
const target = targetOf(link)
const fault = new StoreError('no majority', { outcome: 'not-done', cause: new Error('2 of 3') })
const defect = new TypeError('a defect')

type Reply<T> = { readonly value: T } | { readonly error: Error }

/** Tiers that reply with these values or errors; without `cache` or `replica`, there is none. */
function setUp(given: {
  readonly store: Reply<Link | undefined>
  readonly cache?: Reply<CacheResult>
  readonly replica?: Reply<Link | undefined>
  readonly fill?: Reply<boolean>
}) {
  const metrics = createMetrics()
  const calls: string[] = []
  const fills: CacheEntry[] = []
  const reply = <T>(tier: string, result: Reply<T>): Promise<T> => {
    calls.push(tier)
    return 'error' in result ? Promise.reject(result.error) : Promise.resolve(result.value)
  }
  const { store, cache, replica, fill = { value: true } } = given
  const tiers: TierDeps = {
    links: {
      find: () => reply('store', store),
      ...(replica && { findOnReplica: () => reply('replica', replica) }),
    },
    cache: cache && {
      lookUp: () => reply('cache', cache),
      fill(entry) {
        fills.push(entry)
        return reply('fill', fill)
      },
    },
    nowMs: () => NOW_MS,
    metrics,
  }
  const readTiers = createReadTiers(tiers)
  const countsOf = async (name: 'lookups' | 'linkCacheFills') => {
    const { values } = await metrics[name].get()
    const counted = values.filter(({ value }) => value > 0)
    return Object.fromEntries(
      counted.map(({ labels, value }) => [Object.values(labels).join(' '), value]),
    )
  }
  return { tiers, calls, fills, countsOf, read: () => readTiers('code', () => true) }
}

/** Waits until all settled promises have run their handlers. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

const unknownCode: Reply<CacheResult> = { value: { kind: 'unknown', lease: 'lease' } }
const negative: Reply<CacheResult> = { value: { kind: 'negative' } }

describe('the shared cache', () => {
  test('returns a negative entry without a read of the store, as a miss', async () => {
    const { calls, read, countsOf } = setUp({ store: { value: link }, cache: negative })
    expect(await read()).toBeUndefined()
    expect([calls, await countsOf('lookups')]).toEqual([['cache'], { 'cache miss': 1 }])
  })

  test.each([
    [true, 'stored'],
    [false, 'rejected'],
  ])('is filled with its lease; a fill that returns %s is counted as %s', async (value, result) => {
    const { fills, read, countsOf } = setUp({
      store: { value: link },
      cache: unknownCode,
      fill: { value },
    })
    expect(await read()).toEqual(target)
    await settled()
    expect(fills).toEqual([{ code: 'code', lease: 'lease', target, nowMs: NOW_MS }])
    expect(await countsOf('linkCacheFills')).toEqual({ [result]: 1 })
  })

  test('rejects the lookup if it has a defect, which is counted', async () => {
    const { calls, read, countsOf } = setUp({ store: { value: link }, cache: { error: defect } })
    await expect(read()).rejects.toBe(defect)
    expect([calls, await countsOf('lookups')]).toEqual([['cache'], { 'cache error': 1 }])
  })
})

describe.each([
  ['with', unknownCode],
  ['without', undefined],
] as const)('%s a shared cache, after an error of the store', (_, given) => {
  const cache = given && { cache: given }

  test('rejects with a defect of the store, without a read of a replica', async () => {
    const replica = { value: link }
    const { calls, read } = setUp({ store: { error: defect }, replica, ...cache })
    await expect(read()).rejects.toBe(defect)
    expect(calls).not.toContain('replica')
  })

  test('rejects with a defect of the replica, which is counted', async () => {
    const { read, countsOf } = setUp({
      ...{ store: { error: fault }, replica: { error: defect } },
      ...cache,
    })
    await expect(read()).rejects.toBe(defect)
    expect(await countsOf('lookups')).toMatchObject({ 'store error': 1, 'replica error': 1 })
  })

  test('returns the target of a replica, and does not store it', async () => {
    const replica = { value: link }
    const { fills, read, countsOf } = setUp({ store: { error: fault }, replica, ...cache })
    expect(await read()).toEqual(target)
    await settled()
    expect(fills).toEqual([])
    expect(await countsOf('lookups')).toMatchObject({ 'store error': 1, 'replica hit': 1 })
  })
})

describe('if no tier returns a result', () => {
  const down = new StoreError('timeout', { outcome: 'unknown' })
  const { message, outcome, cause } = fault

  test.each([
    ['store', { store: { error: fault } }],
    ['store and the replica', { store: { error: fault }, replica: { error: down } }],
    ['store and the cache', { store: { error: fault }, cache: { error: down } }],
  ])('rejects with the error of the %s, and that all tiers are unavailable', async (_, given) => {
    const error: unknown = await setUp(given)
      .read()
      .catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(AllTiersUnavailable)
    expect(error).toMatchObject({ message, outcome, cause })
  })

  test('but the cache is available, rejects with the error of the store', async () => {
    const { read } = setUp({ store: { error: fault }, cache: unknownCode })
    await expect(read()).rejects.toBe(fault)
  })

  test('and there is no cache, a stale target is served', async () => {
    let store: Reply<Link | undefined> = { value: link }
    const { tiers } = setUp({ store })
    const find = () =>
      'error' in store ? Promise.reject(store.error) : Promise.resolve(store.value)
    const finder = createLinkFinder({
      ...tiers,
      links: { find },
      isOnlyWriter: true,
      staleMs: 3_600_000,
    })
    expect(await finder.find('code', NOW_MS - 700_000)).toEqual(target)
    store = { error: fault }
    expect(await finder.find('code', NOW_MS)).toMatchObject(target ?? {})
  })
})
