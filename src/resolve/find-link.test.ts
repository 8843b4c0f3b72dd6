// The ladder over a store that answers when the test says so, with a clock of the test's own.
import { expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { decideRedirect, targetOf } from '../links/decide-redirect.ts'
import type { Link } from '../links/link.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createLinkFinder } from './find-link.ts'
import { HIT_MS_MAX } from './link-memory.ts'

const MISS_MS = 60_000

interface Asked {
  readonly code: string
  readonly answer: (link: Link | undefined) => void
  readonly fail: (error: Error) => void
}

/** A ladder whose store is asked through `asked`, at `random` of its jitter (1 = longest life). */
function ladder({ missMs = 0, random = 1 } = {}) {
  const clock = { nowMs: 1_790_000_000_000 }
  const asked: Asked[] = []
  const metrics = createMetrics()
  const finder = createLinkFinder({
    links: {
      find: (code) =>
        new Promise((resolve, reject) => {
          asked.push({ code, answer: resolve, fail: reject })
        }),
    },
    nowMs: () => clock.nowMs,
    metrics,
    missMs,
    random: () => random,
  })
  const find = (code = 'code') => finder.find(code, clock.nowMs)
  const later = async (code?: string) => find(code)
  /** Answers the look-up that has waited longest. */
  const answer = (link: Link | undefined) => {
    const next = asked.shift()
    if (next === undefined) throw new Error('the store was not asked')
    next.answer(link)
  }
  const remember = async (link: Link | undefined, code = link?.code ?? 'code') => {
    const found = find(code)
    answer(link)
    return found
  }
  return { clock, asked, finder, find, later, answer, remember, metrics }
}

const link = sampleLink({ code: 'code' })
const target = targetOf(link)

/** Until promises have done what they can. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a link that was found is answered from memory at once', async () => {
  const { find, remember, asked } = ladder()
  expect(await remember(link)).toMatchObject(target ?? {})
  expect(find()).toMatchObject(target ?? {})
  expect(asked).toHaveLength(0)
})

test('its life counts from the start of the look-up, and reading does not prolong it', async () => {
  const { clock, find, answer, asked } = ladder()
  const found = find()
  clock.nowMs += HIT_MS_MAX - 1 // the store takes its time
  answer(link)
  await found
  expect(find()).toMatchObject(target ?? {})
  clock.nowMs += 1
  expect(find()).toBeInstanceOf(Promise)
  expect(asked).toHaveLength(1)
})

test('its life is at most 4 s, and jittered', async () => {
  expect(HIT_MS_MAX).toBe(4000)
  for (const [random, lifeMs] of [
    [0, 3000],
    [0.5, 3500],
    [1, 4000],
  ] as const) {
    const { clock, find, remember } = ladder({ random })
    await remember(link)
    for (let ms = 500; ms < lifeMs; ms += 500) {
      clock.nowMs += 500
      expect(find()).toMatchObject(target ?? {})
    }
    clock.nowMs += 500
    expect(find()).toBeInstanceOf(Promise)
  }
})

test('a miss is remembered for a minute where this process alone creates links', async () => {
  const { clock, find, answer, asked } = ladder({ missMs: MISS_MS })
  const found = find()
  clock.nowMs += 1000
  answer(undefined)
  expect(await found).toBeUndefined()
  clock.nowMs += MISS_MS - 1001
  expect(find()).toBeUndefined()
  expect(asked).toHaveLength(0)
  clock.nowMs += 1
  expect(find()).toBeInstanceOf(Promise)
})

test.each([
  ['a hit', link],
  ['a miss', undefined],
])('%s from before the clock was set back is not answered: its age is unknown', async (_, seen) => {
  const { clock, find, answer, remember } = ladder({ missMs: MISS_MS })
  await remember(seen)
  clock.nowMs -= 3_600_000
  const found = find()
  expect(found).toBeInstanceOf(Promise)
  const changed = { ...link, longUrl: 'https://other.example/' }
  answer(changed)
  expect(await found).toMatchObject({ longUrl: changed.longUrl })
  expect(find()).toMatchObject({ longUrl: changed.longUrl })
})

test('elsewhere a miss is not remembered', async () => {
  const { find, remember, asked } = ladder({ missMs: 0 })
  expect(await remember(undefined)).toBeUndefined()
  expect(find()).toBeInstanceOf(Promise)
  expect(asked).toHaveLength(1)
})

test.each([
  ['disabled', { disabledAtMs: 1 }],
  ['deleted', { longUrl: null, deletedAtMs: 1 }],
])('a %s link counts as none', async (_, change) => {
  const { find, remember } = ladder({ missMs: MISS_MS })
  expect(await remember({ ...link, ...change })).toBeUndefined()
  expect(find()).toBeUndefined()
})

test('an expired link is found: the decision judges it, also out of memory', async () => {
  const { clock, find, remember } = ladder()
  const expiresAtMs = clock.nowMs + 1000
  const found = await remember({ ...link, expiresAtMs })
  expect(decideRedirect(found, clock.nowMs)).toBeDefined()
  clock.nowMs = expiresAtMs
  const remembered = find()
  if (remembered instanceof Promise) throw new Error('it should be in memory')
  expect(remembered).toMatchObject({ expiresAtMs })
  expect(decideRedirect(remembered, clock.nowMs)).toBeUndefined()
})

test('look-ups of one code at once ask the store once and share a hit', async () => {
  const { later, answer, asked } = ladder()
  const found = Array.from({ length: 50 }, () => later())
  expect(asked).toHaveLength(1)
  answer(link)
  for (const one of await Promise.all(found)) expect(one).toMatchObject(target ?? {})
  expect(asked).toHaveLength(0)
})

test('look-ups of different codes do not wait for each other', async () => {
  const { find, asked } = ladder()
  const [one, other] = [find('a'), find('b')]
  expect(asked.map(({ code }) => code)).toEqual(['a', 'b'])
  asked[1]?.answer({ ...link, code: 'b' })
  expect(await other).toBeDefined()
  asked[0]?.answer(undefined)
  expect(await one).toBeUndefined()
})

test('who joins a miss asks again, once for all who joined', async () => {
  const { later, answer, asked } = ladder({ missMs: 0 })
  const first = later()
  const joined = [later(), later(), later()]
  answer(undefined) // the link is stored only now
  expect(await first).toBeUndefined()
  await settled()
  expect(asked).toHaveLength(1)
  answer(link)
  for (const one of await Promise.all(joined)) expect(one).toMatchObject(target ?? {})
})

test('who joins a miss, and finds a second one, believes it', async () => {
  const { later, answer } = ladder()
  void later()
  const joined = [later(), later()]
  answer(undefined)
  await settled()
  answer(undefined)
  expect(await Promise.all(joined)).toEqual([undefined, undefined])
})

test('a look-up as old as a memory entry is not joined, and its answer not kept', async () => {
  const { clock, find, answer, asked } = ladder()
  const slow = find()
  clock.nowMs += HIT_MS_MAX
  const next = find()
  expect(asked).toHaveLength(2)
  answer(link) // the slow one
  expect(await slow).toMatchObject(target ?? {})
  expect(find()).toBeInstanceOf(Promise)
  expect(asked).toHaveLength(1)
  answer(undefined)
  expect(await next).toBeUndefined()
})

test('forget() takes hits and misses out of memory', async () => {
  const { finder, find, remember, asked } = ladder({ missMs: MISS_MS })
  await remember(link)
  await remember(undefined, 'none')
  finder.forget('code')
  finder.forget('none')
  void find()
  void find('none')
  expect(asked).toHaveLength(2)
})

test.each([
  ['hit', link],
  ['miss', undefined],
])('a look-up under way at forget() is neither joined nor kept: a %s', async (_, seen) => {
  const { finder, find, later, answer, asked } = ladder({ missMs: MISS_MS })
  const before = later()
  finder.forget('code')
  const after = later()
  expect(asked).toHaveLength(2)
  answer(seen)
  await before
  const changed = { ...link, longUrl: 'https://example.com/changed' }
  const joined = later() // the second look-up is still to be joined
  expect(asked).toHaveLength(1)
  answer(changed)
  for (const found of await Promise.all([after, joined])) {
    expect(found?.longUrl).toBe(changed.longUrl)
  }
  expect(find()).toMatchObject({ longUrl: changed.longUrl })
})

test('a fault of the store reaches all who wait, and is not remembered', async () => {
  const { later, remember, asked } = ladder({ missMs: MISS_MS })
  const found = [later(), later()]
  const fault = new StoreError('away', { outcome: 'not-done' })
  asked.shift()?.fail(fault)
  for (const end of await Promise.allSettled(found)) {
    expect(end).toEqual({ status: 'rejected', reason: fault })
  }
  expect(await remember(link)).toMatchObject(target ?? {})
})

test('a fault leaves what is in memory alone', async () => {
  const { find, remember, asked } = ladder()
  await remember(link)
  const other = find('other')
  asked.shift()?.fail(new StoreError('away', { outcome: 'not-done' }))
  await expect(other).rejects.toBeInstanceOf(StoreError)
  expect(find()).toMatchObject(target ?? {})
})

test('each look-up is counted by its tier and outcome', async () => {
  const { find, remember, asked, metrics } = ladder({ missMs: MISS_MS })
  await remember(link)
  void find()
  await remember(undefined, 'none')
  void find('none')
  const failing = find('x')
  asked.shift()?.fail(new StoreError('away', { outcome: 'not-done' }))
  await expect(failing).rejects.toThrow()
  const { values } = await metrics.lookups.get()
  const counts = values.map(({ labels, value }) => ({ ...labels, value }))
  for (const [tier, outcome] of [
    ['memory', 'hit'],
    ['memory', 'miss'],
    ['store', 'hit'],
    ['store', 'miss'],
    ['store', 'error'],
  ]) {
    expect(counts).toContainEqual({ tier, result: outcome, value: 1 })
  }
})
