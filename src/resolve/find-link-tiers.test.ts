// The lookup with a shared cache and a store of several replicas: which tiers it reads, which
// results it trusts and caches, and what it returns when all tiers are unavailable.
import { describe, expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { type Target, targetOf } from '../links/decide-redirect.ts'
import type { CacheEntry, LinkCache } from '../links/link-cache.ts'
import type { Link } from '../links/link.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryLinkCache } from '../../test/kit/stores/memory-link-cache.ts'
import { createLinkFinder, type FindDeps } from './find-link.ts'
import { UNCERTAIN_HIT_MS, EXTENSION_MS } from './link-memory.ts'

const DAY_MS = 86_400_000
const link = sampleLink({ code: 'code' })
const target = targetOf(link)
const disabled = { ...link, disabledAtMs: 1 }

/** The reply of a tier, or `unavailable` if it fails. */
type Reply<T> = T | 'unavailable'

/** A finder over a memory cache, which can be unavailable, and a store that returns `replies`. */
function setUp({ staleMs = DAY_MS, hasReplicas = true } = {}) {
  const clock = { nowMs: 1_790_000_000_000 }
  const nowMs = () => clock.nowMs
  const replies: {
    cache: 'available' | 'unavailable'
    store: Reply<Link | undefined>
    replica: Reply<Link | undefined>
  } = { cache: 'available', store: link, replica: 'unavailable' }
  const calls: string[] = []
  const fills: CacheEntry[] = []
  const sharedCache = createMemoryLinkCache({ nowMs, random: () => 0.5 })
  const fail = () => Promise.reject(new StoreError('unavailable', { outcome: 'not-done' }))
  const readFrom = (source: 'store' | 'replica') => {
    calls.push(source)
    const reply = replies[source]
    return reply === 'unavailable' ? fail() : Promise.resolve(reply)
  }
  const cache: Pick<LinkCache, 'lookUp' | 'fill'> = {
    lookUp(code) {
      calls.push('cache')
      return replies.cache === 'unavailable' ? fail() : sharedCache.lookUp(code)
    },
    fill(entry) {
      fills.push(entry)
      return replies.cache === 'unavailable' ? fail() : sharedCache.fill(entry)
    },
  }
  const metrics = createMetrics()
  const find = () => readFrom('store')
  const links: FindDeps['links'] = hasReplicas
    ? { find, findOnReplica: () => readFrom('replica') }
    : { find }
  const createFinder = () =>
    createLinkFinder({
      links,
      cache,
      nowMs,
      metrics,
      isOnlyWriter: false,
      staleMs,
      random: () => 1,
    })
  const finder = createFinder()
  return {
    clock,
    replies,
    calls,
    fills,
    sharedCache,
    finder,
    metrics,
    find: (): Promise<Target | undefined> => Promise.resolve(finder.find('code', clock.nowMs)),
    /** Looks up the code in a new pod with the same cache and store. */
    findInOtherPod: (): Promise<Target | undefined> =>
      Promise.resolve(createFinder().find('code', clock.nowMs)),
    countsOf: async () => {
      const { values } = await metrics.lookups.get()
      return Object.fromEntries(
        values.map(({ labels, value }) => [
          `${String(labels.tier)} ${String(labels.result)}`,
          value,
        ]),
      )
    },
  }
}

/** Waits until all settled promises have run their handlers. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the shared cache', () => {
  test.each([
    ['a target', link],
    ['a missing link', undefined],
    ['a disabled link as missing', disabled],
  ])(
    'is read first, then filled from the store, and returns the next result: %s',
    async (_, stored) => {
      const { replies, calls, find, findInOtherPod, countsOf } = setUp()
      replies.store = stored
      const found = targetOf(stored)
      expect(await find()).toEqual(found)
      await settled()
      expect(await findInOtherPod()).toEqual(found)
      expect(calls).toEqual(['cache', 'store', 'cache'])
      const outcome = found === undefined ? 'miss' : 'hit'
      const counts = { 'cache unknown': 1, [`store ${outcome}`]: 1, [`cache ${outcome}`]: 1 }
      expect(await countsOf()).toMatchObject(counts)
    },
  )

  test('an expired target of the cache is found: the caller checks its expiry', async () => {
    const { replies, clock, find, findInOtherPod } = setUp()
    replies.store = { ...link, expiresAtMs: clock.nowMs - 1 }
    await find()
    await settled()
    expect(await findInOtherPod()).toMatchObject({ expiresAtMs: clock.nowMs - 1 })
  })

  test('a negative entry of the shared cache is not cached in memory', async () => {
    const { replies, sharedCache, find } = setUp()
    replies.store = undefined
    expect(await find()).toBeUndefined()
    await settled()
    replies.store = link
    await sharedCache.invalidate('code')
    expect(await find()).toEqual(target)
  })

  test('a lookup without a lease stores nothing', async () => {
    const { sharedCache, fills, find } = setUp()
    await sharedCache.lookUp('code')
    expect(await find()).toEqual(target)
    expect(fills).toEqual([])
  })

  test('while unavailable, it is not filled and the store is read immediately', async () => {
    const { replies, calls, fills, find, countsOf } = setUp()
    replies.cache = 'unavailable'
    expect(await find()).toEqual(target)
    expect([calls, fills]).toEqual([['cache', 'store'], []])
    expect(await countsOf()).toMatchObject({ 'cache error': 1, 'store hit': 1 })
  })

  test('a failed fill is counted, and the target is still returned', async () => {
    const { replies, metrics, find } = setUp()
    const found = find()
    replies.cache = 'unavailable'
    expect(await found).toEqual(target)
    await settled()
    const { values } = await metrics.linkCacheFills.get()
    expect(values).toEqual([{ labels: { result: 'failed' }, value: 1 }])
  })

  test('a result that was read before this process changed the record is not stored', async () => {
    const { finder, fills, find } = setUp()
    const found = find()
    finder.invalidate('code')
    expect(await found).toEqual(target)
    expect(fills).toEqual([])
  })
})

describe('while no majority is available', () => {
  test('a target of one replica is cached in memory, not in the shared cache', async () => {
    const { replies, calls, fills, find, countsOf } = setUp()
    replies.store = 'unavailable'
    replies.replica = link
    expect(await find()).toEqual(target)
    expect(await find()).toMatchObject(target ?? {})
    expect([calls, fills]).toEqual([['cache', 'store', 'replica'], []])
    expect(await countsOf()).toMatchObject({ 'replica hit': 1, 'memory hit': 1 })
  })

  test.each([
    ['a missing link', undefined],
    ['a disabled link', disabled],
    ['a deleted link', { ...link, longUrl: null, deletedAtMs: 1 }],
  ])('%s on one replica is not trusted: the store is unavailable', async (_, found) => {
    const { replies, fills, find, countsOf } = setUp()
    replies.store = 'unavailable'
    replies.replica = found
    await expect(find()).rejects.toBeInstanceOf(StoreError)
    expect(fills).toEqual([])
    expect(await countsOf()).toMatchObject({ 'store error': 1, 'replica miss': 1 })
  })

  test('if the read of a store without replicas fails, the lookup fails', async () => {
    const { replies, find } = setUp({ hasReplicas: false })
    replies.store = 'unavailable'
    await expect(find()).rejects.toBeInstanceOf(StoreError)
  })

  test('a defect is not an outage', async () => {
    const { replies, find } = setUp()
    Object.defineProperty(replies, 'store', {
      get() {
        throw new TypeError('a defect')
      },
    })
    await expect(find()).rejects.toThrow(TypeError)
  })
})

describe('while store and cache are both unavailable', () => {
  /** A finder that read the link `agoMs` ago; all tiers have been unavailable since. */
  async function setUpOutage(agoMs: number, given: { staleMs?: number; stored?: Link } = {}) {
    const setup = setUp(given.staleMs === undefined ? {} : { staleMs: given.staleMs })
    setup.replies.store = given.stored ?? link
    await setup.find()
    await settled()
    setup.replies.store = 'unavailable'
    setup.replies.cache = 'unavailable'
    setup.clock.nowMs += agoMs
    return setup
  }

  test('a link that was read recently is served', async () => {
    const { find, countsOf } = await setUpOutage(DAY_MS - 1)
    expect(await find()).toMatchObject(target ?? {})
    expect(await countsOf()).toMatchObject({ 'stale hit': 1 })
  })

  test('retries the tiers once a second; serves the target up to its maximum age', async () => {
    const { calls, clock, find } = await setUpOutage(UNCERTAIN_HIT_MS)
    calls.length = 0
    for (let ms = 0; ms < EXTENSION_MS; ms += 100) {
      expect(await find()).toMatchObject(target ?? {})
      clock.nowMs += 100
    }
    expect(calls).toEqual(['cache', 'store', 'replica'])
    await find()
    expect(calls).toHaveLength(6)
    clock.nowMs += DAY_MS
    await expect(find()).rejects.toBeInstanceOf(StoreError)
  })

  test('retries the tiers once a second even after the clock was set back', async () => {
    const { calls, find } = await setUpOutage(-3_600_000)
    await find()
    calls.length = 0
    expect(await find()).toMatchObject(target ?? {})
    expect(calls).toEqual([])
  })

  test('the reply of a recovered tier replaces the stale target', async () => {
    const { replies, clock, find } = await setUpOutage(UNCERTAIN_HIT_MS)
    await find()
    replies.store = disabled
    clock.nowMs += EXTENSION_MS
    expect(await find()).toBeUndefined()
    replies.store = 'unavailable' // a removed stale target does not reappear
    await expect(find()).rejects.toBeInstanceOf(StoreError)
  })

  test.each<[string, (setup: Awaited<ReturnType<typeof setUpOutage>>) => void]>([
    ['the cache is available', ({ replies }) => (replies.cache = 'available')],
    ['the link is disabled on a replica', ({ replies }) => (replies.replica = disabled)],
    [
      'this process has changed the record',
      ({ finder }) => {
        finder.invalidate('code')
      },
    ],
  ])('no stale target is served if %s', async (_, change) => {
    const setup = await setUpOutage(UNCERTAIN_HIT_MS)
    if (setup.replies.cache === 'unavailable') await setup.sharedCache.invalidate('code')
    change(setup)
    await expect(setup.find()).rejects.toBeInstanceOf(StoreError)
  })

  test('a replica without the link does not prevent the redirect', async () => {
    const { replies, find } = await setUpOutage(UNCERTAIN_HIT_MS)
    replies.replica = undefined
    expect(await find()).toMatchObject(target ?? {})
  })

  test('no stale target is served after its expiry or after staleMs, or if that is 0', async () => {
    const expiring = { ...link, expiresAtMs: 1_790_000_000_000 + UNCERTAIN_HIT_MS }
    for (const setup of [
      await setUpOutage(UNCERTAIN_HIT_MS, { stored: expiring }),
      await setUpOutage(60_000, { staleMs: 60_000 }),
      await setUpOutage(UNCERTAIN_HIT_MS, { staleMs: 0 }),
    ]) {
      await expect(setup.find()).rejects.toBeInstanceOf(StoreError)
      expect(await setup.countsOf()).toMatchObject({ 'stale hit': 0 })
    }
  })
})

test('a clock that is set back extends no lifetime', async () => {
  const { clock, calls, find } = setUp()
  await find()
  clock.nowMs -= 3_600_000
  await find()
  expect(calls.filter((tier) => tier === 'cache')).toHaveLength(2)
})
