// The ladder with a shared cache and a store of several replicas: whom it asks, whom it believes,
// what it remembers, and what it says when nobody answers.
import { describe, expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { type Target, targetOf } from '../links/decide-redirect.ts'
import type { CacheEntry, LinkCache } from '../links/link-cache.ts'
import type { Link } from '../links/link.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryLinkCache } from '../stores/memory/link-cache.ts'
import { createLinkFinder, type FindDeps } from './find-link.ts'
import { HIT_MS_MAX, EXTENSION_MS } from './link-memory.ts'

const DAY_MS = 86_400_000
const link = sampleLink({ code: 'code' })
const target = targetOf(link)
const disabled = { ...link, disabledAtMs: 1 }

/** What a part says: a value, or nothing. */
type Says<T> = T | 'away'

/** A ladder over a cache and a store that say what the test puts there. */
function ladder({ staleMs = DAY_MS, hasReplicas = true } = {}) {
  const clock = { nowMs: 1_790_000_000_000 }
  const nowMs = () => clock.nowMs
  const says: {
    cache: 'there' | 'away'
    store: Says<Link | undefined>
    replica: Says<Link | undefined>
  } = { cache: 'there', store: link, replica: 'away' }
  const asked: string[] = []
  const fills: CacheEntry[] = []
  const kept = createMemoryLinkCache({ nowMs, random: () => 0.5 })
  const away = () => Promise.reject(new StoreError('away', { outcome: 'not-done' }))
  const answer = (part: 'store' | 'replica') => {
    asked.push(part)
    const said = says[part]
    return said === 'away' ? away() : Promise.resolve(said)
  }
  const cache: Pick<LinkCache, 'look' | 'fill'> = {
    look(code) {
      asked.push('cache')
      return says.cache === 'away' ? away() : kept.look(code)
    },
    fill(entry) {
      fills.push(entry)
      return says.cache === 'away' ? away() : kept.fill(entry)
    },
  }
  const metrics = createMetrics()
  const find = () => answer('store')
  const links: FindDeps['links'] = hasReplicas
    ? { find, findOnReplica: () => answer('replica') }
    : { find }
  const make = () =>
    createLinkFinder({ links, cache, nowMs, metrics, missMs: 0, staleMs, random: () => 1 })
  const finder = make()
  return {
    clock,
    says,
    asked,
    fills,
    kept,
    finder,
    metrics,
    find: (): Promise<Target | undefined> => Promise.resolve(finder.find('code', clock.nowMs)),
    /** Another pod with the same cache and store. */
    other: () => {
      const finder = make()
      return (): Promise<Target | undefined> => Promise.resolve(finder.find('code', clock.nowMs))
    },
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

/** Until promises have done what they can. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the shared cache', () => {
  test.each([
    ['a target', link],
    ['that there is nothing', undefined],
    ['a disabled link as nothing', disabled],
  ])('is asked first, filled from the store, and then answers: %s', async (_, stored) => {
    const { says, asked, find, other, countsOf } = ladder()
    says.store = stored
    const found = targetOf(stored)
    expect(await find()).toEqual(found)
    await settled()
    expect(await other()()).toEqual(found)
    expect(asked).toEqual(['cache', 'store', 'cache'])
    const outcome = found === undefined ? 'miss' : 'hit'
    const counts = { 'cache unknown': 1, [`store ${outcome}`]: 1, [`cache ${outcome}`]: 1 }
    expect(await countsOf()).toMatchObject(counts)
  })

  test('an expired target of the cache is found: the decision judges it', async () => {
    const { says, clock, find, other } = ladder()
    says.store = { ...link, expiresAtMs: clock.nowMs - 1 }
    await find()
    await settled()
    expect(await other()()).toMatchObject({ expiresAtMs: clock.nowMs - 1 })
  })

  test('a miss that it remembers is not kept in memory', async () => {
    const { says, kept, find } = ladder()
    says.store = undefined
    expect(await find()).toBeUndefined()
    await settled()
    says.store = link
    await kept.forget('code')
    expect(await find()).toEqual(target)
  })

  test('a look-up without a lease stores nothing', async () => {
    const { kept, fills, find } = ladder()
    await kept.look('code')
    expect(await find()).toEqual(target)
    expect(fills).toEqual([])
  })

  test('away, the store is asked at once, and nothing is stored', async () => {
    const { says, asked, fills, find, countsOf } = ladder()
    says.cache = 'away'
    expect(await find()).toEqual(target)
    expect([asked, fills]).toEqual([['cache', 'store'], []])
    expect(await countsOf()).toMatchObject({ 'cache error': 1, 'store hit': 1 })
  })

  test('a failed fill is counted, and the answer is none the worse', async () => {
    const { says, metrics, find } = ladder()
    const found = find()
    says.cache = 'away'
    expect(await found).toEqual(target)
    await settled()
    const { values } = await metrics.linkCacheFills.get()
    expect(values).toEqual([{ labels: { result: 'failed' }, value: 1 }])
  })

  test('what was looked up before this process changed the record is not stored', async () => {
    const { finder, fills, find } = ladder()
    const found = find()
    finder.forget('code')
    expect(await found).toEqual(target)
    expect(fills).toEqual([])
  })
})

describe('a majority away', () => {
  test('a target that one replica has is believed and remembered, not in the cache', async () => {
    const { says, asked, fills, find, countsOf } = ladder()
    says.store = 'away'
    says.replica = link
    expect(await find()).toEqual(target)
    expect(await find()).toMatchObject(target ?? {})
    expect([asked, fills]).toEqual([['cache', 'store', 'replica'], []])
    expect(await countsOf()).toMatchObject({ 'replica hit': 1, 'memory hit': 1 })
  })

  test.each([
    ['nothing', undefined],
    ['a disabled link', disabled],
    ['a deleted link', { ...link, longUrl: null, deletedAtMs: 1 }],
  ])('%s on one replica is not believed: the store is away', async (_, found) => {
    const { says, fills, find, countsOf } = ladder()
    says.store = 'away'
    says.replica = found
    await expect(find()).rejects.toBeInstanceOf(StoreError)
    expect(fills).toEqual([])
    expect(await countsOf()).toMatchObject({ 'store error': 1, 'replica miss': 1 })
  })

  test('a store without replicas is away as a whole', async () => {
    const { says, find } = ladder({ hasReplicas: false })
    says.store = 'away'
    await expect(find()).rejects.toBeInstanceOf(StoreError)
  })

  test('a defect is no outage', async () => {
    const { says, find } = ladder()
    Object.defineProperty(says, 'store', {
      get() {
        throw new TypeError('a defect')
      },
    })
    await expect(find()).rejects.toThrow(TypeError)
  })
})

describe('store and cache both away', () => {
  /** A ladder that has seen the link once, `agoMs` ago, and whose parts are away since. */
  async function abandoned(agoMs: number, given: { staleMs?: number; stored?: Link } = {}) {
    const made = ladder(given.staleMs === undefined ? {} : { staleMs: given.staleMs })
    made.says.store = given.stored ?? link
    await made.find()
    await settled()
    made.says.store = 'away'
    made.says.cache = 'away'
    made.clock.nowMs += agoMs
    return made
  }

  test('a link seen lately is followed', async () => {
    const { find, countsOf } = await abandoned(DAY_MS - 1)
    expect(await find()).toMatchObject(target ?? {})
    expect(await countsOf()).toMatchObject({ 'stale hit': 1 })
  })

  test('not asked again for a second, then again, and not for ever', async () => {
    const { asked, clock, find } = await abandoned(HIT_MS_MAX)
    asked.length = 0
    for (let ms = 0; ms < EXTENSION_MS; ms += 100) {
      expect(await find()).toMatchObject(target ?? {})
      clock.nowMs += 100
    }
    expect(asked).toEqual(['cache', 'store', 'replica'])
    await find()
    expect(asked).toHaveLength(6)
    clock.nowMs += DAY_MS
    await expect(find()).rejects.toBeInstanceOf(StoreError)
  })

  test('once somebody answers again, that holds', async () => {
    const { says, clock, find } = await abandoned(HIT_MS_MAX)
    await find()
    says.store = disabled
    clock.nowMs += EXTENSION_MS
    expect(await find()).toBeUndefined()
    says.store = 'away' // and what is gone does not come back
    await expect(find()).rejects.toBeInstanceOf(StoreError)
  })

  test.each<[string, (made: Awaited<ReturnType<typeof abandoned>>) => void]>([
    ['the cache answers', ({ says }) => (says.cache = 'there')],
    ['a replica says that it is disabled', ({ says }) => (says.replica = disabled)],
    [
      'this process has changed it',
      ({ finder }) => {
        finder.forget('code')
      },
    ],
  ])('not where %s', async (_, change) => {
    const made = await abandoned(HIT_MS_MAX)
    if (made.says.cache === 'away') await made.kept.forget('code')
    change(made)
    await expect(made.find()).rejects.toBeInstanceOf(StoreError)
  })

  test('a replica that does not know the link keeps nobody from following it', async () => {
    const { says, find } = await abandoned(HIT_MS_MAX)
    says.replica = undefined
    expect(await find()).toMatchObject(target ?? {})
  })

  test('not after its own end, not after the time for it, never where that is 0', async () => {
    const ends = { ...link, expiresAtMs: 1_790_000_000_000 + HIT_MS_MAX }
    for (const made of [
      await abandoned(HIT_MS_MAX, { stored: ends }),
      await abandoned(60_000, { staleMs: 60_000 }),
      await abandoned(HIT_MS_MAX, { staleMs: 0 }),
    ]) {
      await expect(made.find()).rejects.toBeInstanceOf(StoreError)
    }
  })
})

test('a clock that is set back makes nothing live longer', async () => {
  const { clock, asked, find } = ladder()
  await find()
  clock.nowMs -= 3_600_000
  await find()
  expect(asked.filter((part) => part === 'cache')).toHaveLength(2)
})
