// The lookup over a store whose replies the test controls, with a simulated clock.
import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { bytesLeftPerCall } from '../../test/kit/bytes-left.ts'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { decideRedirect, targetOf } from '../links/decide-redirect.ts'
import type { Link } from '../links/link.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createLinkFinder } from './find-link.ts'
import { UNCERTAIN_HIT_MS, ONLY_WRITER_MS } from './link-memory.ts'

interface PendingRead {
  readonly code: string
  readonly reply: (link: Link | undefined) => void
  readonly fail: (error: Error) => void
}

/** A finder whose store reads wait in `reads`; `random` sets the jitter (1 = longest lifetime). */
function setUp({ isOnlyWriter = false, random = 1 } = {}) {
  const clock = { nowMs: 1_790_000_000_000 }
  const reads: PendingRead[] = []
  const metrics = createMetrics()
  const finder = createLinkFinder({
    links: {
      find: (code) =>
        new Promise((resolve, reject) => {
          reads.push({ code, reply: resolve, fail: reject })
        }),
    },
    nowMs: () => clock.nowMs,
    metrics,
    isOnlyWriter,
    random: () => random,
  })
  const find = (code = 'code') => finder.find(code, clock.nowMs)
  const findAsync = async (code?: string) => find(code)
  /** Completes the oldest pending read. */
  const reply = (link: Link | undefined) => {
    const next = reads.shift()
    if (next === undefined) throw new Error('no read is pending')
    next.reply(link)
  }
  const findWithReply = async (link: Link | undefined, code = link?.code ?? 'code') => {
    const found = find(code)
    reply(link)
    return found
  }
  return { clock, reads, finder, find, findAsync, reply, findWithReply, metrics }
}

const link = sampleLink({ code: 'code' })
const target = targetOf(link)

/** Waits until all settled promises have run their handlers. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a link that was found is returned from memory synchronously', async () => {
  const { find, findWithReply, reads } = setUp()
  expect(await findWithReply(link)).toMatchObject(target ?? {})
  expect(find()).toMatchObject(target ?? {})
  expect(reads).toHaveLength(0)
})

test('the lifetime of a link starts with the lookup, and reads do not extend it', async () => {
  const { clock, find, reply, reads } = setUp()
  const found = find()
  clock.nowMs += UNCERTAIN_HIT_MS - 1 // the store is slow
  reply(link)
  await found
  expect(find()).toMatchObject(target ?? {})
  clock.nowMs += 1
  expect(find()).toBeInstanceOf(Promise)
  expect(reads).toHaveLength(1)
})

test('the lifetime of a link is at most 4 s, and jittered', async () => {
  expect(UNCERTAIN_HIT_MS).toBe(4000)
  for (const [random, lifeMs] of [
    [0, 3000],
    [0.5, 3500],
    [1, 4000],
  ] as const) {
    const { clock, find, findWithReply } = setUp({ random })
    await findWithReply(link)
    for (let ms = 500; ms < lifeMs; ms += 500) {
      clock.nowMs += 500
      expect(find()).toMatchObject(target ?? {})
    }
    clock.nowMs += 500
    expect(find()).toBeInstanceOf(Promise)
  }
})

test('a miss is cached for a minute if only this process creates links', async () => {
  const { clock, find, reply, reads } = setUp({ isOnlyWriter: true })
  const found = find()
  clock.nowMs += 1000
  reply(undefined)
  expect(await found).toBeUndefined()
  clock.nowMs += ONLY_WRITER_MS.miss - 1001
  expect(find()).toBeUndefined()
  expect(reads).toHaveLength(0)
  clock.nowMs += 1
  expect(find()).toBeInstanceOf(Promise)
})

test.each([
  ['a hit', link],
  ['a miss', undefined],
])(
  'after the clock was set back, %s in memory is not returned: its age is unknown',
  async (_, found) => {
    const { clock, find, reply, findWithReply } = setUp({ isOnlyWriter: true })
    await findWithReply(found)
    clock.nowMs -= 3_600_000
    const next = find()
    expect(next).toBeInstanceOf(Promise)
    const changed = { ...link, longUrl: 'https://other.example/' }
    reply(changed)
    expect(await next).toMatchObject({ longUrl: changed.longUrl })
    expect(find()).toMatchObject({ longUrl: changed.longUrl })
  },
)

test('a miss is not cached if other processes create links', async () => {
  const { find, findWithReply, reads } = setUp({ isOnlyWriter: false })
  expect(await findWithReply(undefined)).toBeUndefined()
  expect(find()).toBeInstanceOf(Promise)
  expect(reads).toHaveLength(1)
})

test.each([
  ['disabled', { disabledAtMs: 1 }],
  ['deleted', { longUrl: null, deletedAtMs: 1 }],
])('a %s link counts as missing', async (_, change) => {
  const { find, findWithReply } = setUp({ isOnlyWriter: true })
  expect(await findWithReply({ ...link, ...change })).toBeUndefined()
  expect(find()).toBeUndefined()
})

test('an expired link is found, even in memory: the caller checks its expiry', async () => {
  const { clock, find, findWithReply } = setUp()
  const expiresAtMs = clock.nowMs + 1000
  const found = await findWithReply({ ...link, expiresAtMs })
  expect(decideRedirect(found, clock.nowMs)).toBeDefined()
  clock.nowMs = expiresAtMs
  const cached = find()
  if (cached instanceof Promise) throw new Error('it is not in memory')
  expect(cached).toMatchObject({ expiresAtMs })
  expect(decideRedirect(cached, clock.nowMs)).toBeUndefined()
})

test('concurrent lookups of one code read the store once and share a hit', async () => {
  const { findAsync, reply, reads } = setUp()
  const found = Array.from({ length: 50 }, () => findAsync())
  expect(reads).toHaveLength(1)
  reply(link)
  for (const one of await Promise.all(found)) expect(one).toMatchObject(target ?? {})
  expect(reads).toHaveLength(0)
})

test('lookups of different codes do not wait for each other', async () => {
  const { find, reads } = setUp()
  const [one, other] = [find('a'), find('b')]
  expect(reads.map(({ code }) => code)).toEqual(['a', 'b'])
  reads[1]?.reply({ ...link, code: 'b' })
  expect(await other).toBeDefined()
  reads[0]?.reply(undefined)
  expect(await one).toBeUndefined()
})

test('lookups that joined a miss are retried, with one read for all of them', async () => {
  const { findAsync, reply, reads } = setUp({ isOnlyWriter: false })
  const first = findAsync()
  const joined = [findAsync(), findAsync(), findAsync()]
  reply(undefined) // the link is stored only now
  expect(await first).toBeUndefined()
  await settled()
  expect(reads).toHaveLength(1)
  reply(link)
  for (const one of await Promise.all(joined)) expect(one).toMatchObject(target ?? {})
})

test('lookups that joined a miss accept a second miss', async () => {
  const { findAsync, reply } = setUp()
  void findAsync()
  const joined = [findAsync(), findAsync()]
  reply(undefined)
  await settled()
  reply(undefined)
  expect(await Promise.all(joined)).toEqual([undefined, undefined])
})

test('a lookup that started UNCERTAIN_HIT_MS ago is not joined nor its result cached', async () => {
  const { clock, find, reply, reads } = setUp()
  const slow = find()
  clock.nowMs += UNCERTAIN_HIT_MS
  const next = find()
  expect(reads).toHaveLength(2)
  reply(link) // the slow one
  expect(await slow).toMatchObject(target ?? {})
  expect(find()).toBeInstanceOf(Promise)
  expect(reads).toHaveLength(1)
  reply(undefined)
  expect(await next).toBeUndefined()
})

test('invalidate() removes hits and misses from memory', async () => {
  const { finder, find, findWithReply, reads } = setUp({ isOnlyWriter: true })
  await findWithReply(link)
  await findWithReply(undefined, 'none')
  finder.invalidate('code')
  finder.invalidate('none')
  void find()
  void find('none')
  expect(reads).toHaveLength(2)
})

test.each([
  ['hit', link],
  ['miss', undefined],
])('a lookup in flight at invalidate() is neither joined nor cached: a %s', async (_, result) => {
  const { finder, find, findAsync, reply, reads } = setUp({ isOnlyWriter: true })
  const before = findAsync()
  finder.invalidate('code')
  const after = findAsync()
  expect(reads).toHaveLength(2)
  reply(result)
  await before
  const changed = { ...link, longUrl: 'https://example.com/changed' }
  const joined = findAsync() // joins the second lookup
  expect(reads).toHaveLength(1)
  reply(changed)
  for (const found of await Promise.all([after, joined])) {
    expect(found?.longUrl).toBe(changed.longUrl)
  }
  expect(find()).toMatchObject({ longUrl: changed.longUrl })
})

test('a failure of the store rejects all waiting lookups, and is not cached', async () => {
  const { findAsync, findWithReply, reads } = setUp({ isOnlyWriter: true })
  const found = [findAsync(), findAsync()]
  const fault = new StoreError('unavailable', { outcome: 'not-done' })
  reads.shift()?.fail(fault)
  for (const settlement of await Promise.allSettled(found)) {
    expect(settlement).toEqual({ status: 'rejected', reason: fault })
  }
  expect(await findWithReply(link)).toMatchObject(target ?? {})
})

test('a failure does not change what is in memory', async () => {
  const { find, findWithReply, reads } = setUp()
  await findWithReply(link)
  const other = find('other')
  reads.shift()?.fail(new StoreError('unavailable', { outcome: 'not-done' }))
  await expect(other).rejects.toBeInstanceOf(StoreError)
  expect(find()).toMatchObject(target ?? {})
})

test('each lookup is counted by its tier and result', async () => {
  const { find, findWithReply, reads, metrics } = setUp({ isOnlyWriter: true })
  await findWithReply(link)
  void find()
  await findWithReply(undefined, 'none')
  void find('none')
  const failing = find('x')
  reads.shift()?.fail(new StoreError('unavailable', { outcome: 'not-done' }))
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

test('completed lookups are freed by minor garbage collections', async () => {
  const { reads, findAsync } = setUp()
  let lookups = 0
  const bytes = await bytesLeftPerCall(async () => {
    findAsync(`code${++lookups}`).catch(() => undefined)
    const message = randomBytes(5000).toString('hex')
    if (lookups > 3) reads.shift()?.fail(new StoreError(message, { outcome: 'not-done' }))
    await settled()
  })
  expect(bytes).toBeLessThan(2000)
})
