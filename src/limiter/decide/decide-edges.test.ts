// Calls that the store cannot decide, or whose decisions arrive after the deadline.
import { expect, test } from '@jest/globals'
import { entriesOf, limiterOf, START_US } from '../../../test/kit/ratelimit/decide-limits.ts'
import { rulesOf } from '../../../test/kit/rules-file.ts'
import type { Decision } from '../../limits/algorithm.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createDecideLimits } from './decide-limits.ts'
import { createDenyCache } from './deny-cache.ts'
import type { GuardedStore } from './guard-store.ts'
import { createLocalShares } from './local-shares.ts'

const modes = `
domain: shop
descriptors:
- {key: allow, rate_limit: {unit: day, requests_per_unit: 4, on_store_error: allow}}
- {key: deny, rate_limit: {unit: day, requests_per_unit: 4, on_store_error: deny}}
- {key: local, rate_limit: {unit: day, requests_per_unit: 9}}
`

test('a rule with on_store_error: deny also denies peeks, and reports a wait of 1 s', async () => {
  const { request, store } = limiterOf(modes)
  store.isUnavailable = true
  expect(await request(entriesOf({ deny: '' }, 0))).toMatchObject({
    code: 'OVER_LIMIT',
    statuses: [{ limitRemaining: 0, resetSeconds: 1 }],
  })
  expect(await request(entriesOf({ allow: '' }, 0))).toMatchObject({
    code: 'OK',
    statuses: [{ limitRemaining: 4, resetSeconds: 0 }],
  })
})

test('a refund removes a cached denial even if the store does not respond', async () => {
  const { request, store } = limiterOf(modes, { hasDenyCache: true })
  for (let hit = 0; hit < 10; hit++) await request({ local: '' })
  const before = store.calls.length
  await request({ local: '' })
  expect(store.calls).toHaveLength(before)
  store.isUnavailable = true
  await request(entriesOf({ local: '' }, -1))
  store.isUnavailable = false
  await request({ local: '' })
  expect(store.calls).toHaveLength(before + 2)
})

/** A limiter with this store, without rendered responses; it records decisions in `decided`. */
function openLimiter(decide: GuardedStore['decide'], decided: Decision[] = []) {
  const nowUs = () => START_US
  const rules = rulesOf(modes)
  const use = createDecideLimits({
    rules: () => rules,
    store: { decide } as GuardedStore,
    shares: createLocalShares({
      replicas: 1,
      local: createMemoryCounterStore({ nowUs }),
      pending: createMemoryCounterStore({ nowUs }),
      isUnresponsive: () => true,
      nowUs,
    }),
    denyCache: undefined,
    record: (_, decision) => decided.push(decision),
    onUnknownDomain: () => undefined,
    ...{ onGlobalShadow: () => undefined, renderMetadata: () => undefined },
    renderResponse: () => ({ headers: [], body: undefined }),
    nowUs,
    options: { areAllShadow: false, areAllQuotas: false, denyConsumes: true },
  })
  return (...keys: readonly (string | { readonly key: string; readonly hits: number })[]) => {
    const descriptors = keys.map((one) =>
      typeof one === 'string' ? entriesOf({ [one]: '' }) : entriesOf({ [one.key]: '' }, one.hits),
    )
    return use({ domain: 'shop', descriptors, hits: 1 })
  }
}

test('a rule with on_store_error: deny records the denied hits, and no refund', async () => {
  const decided: Decision[] = []
  const request = openLimiter(() => Promise.resolve({ delayedResult: undefined }), decided)
  await request({ key: 'deny', hits: 3 }, { key: 'deny', hits: -2 }, { key: 'allow', hits: 3 })
  expect(decided.map(({ admitted, over }) => [admitted, over])).toEqual([
    [false, 3],
    [true, 0],
    [true, 0],
  ])
})

test('delayed decisions are recorded for the rules that were decided locally', async () => {
  const reported = (remaining: number): Decision => ({
    ...{ admitted: true, remaining, over: 0, resetUs: 1_000_000, retryAfterUs: 0 },
    ...{ next: undefined, expiresInUs: 0 },
  })
  const delayedResult = Promise.resolve([reported(3), reported(5)])
  const request = openLimiter(() => Promise.resolve({ delayedResult }))
  await request('allow', 'local')
  await new Promise(setImmediate)
  const { statuses } = await request('local')
  expect(statuses).toMatchObject([{ code: 'OK', limitRemaining: 5 - 1 }])
})

test('a call fails if the store returns too few decisions', async () => {
  const request = openLimiter(() => Promise.resolve([]))
  await expect(request('local')).rejects.toThrow('too few decisions from the store')
})

test('a denial is removed only from the cache if it is cached', () => {
  const cache = createDenyCache(256) // of one denial
  const [check] = [{ requests: 0, windowUs: 1_000_000, burst: 0, denyConsumes: true }]
  const update = { key: 'a', limit: check, hits: 1 } as Parameters<typeof cache.store>[0]
  const denial = { admitted: false, remaining: 0, over: 1, resetUs: 9, retryAfterUs: 9 }
  cache.store(update, { ...denial, next: undefined, expiresInUs: 0 }, START_US)
  cache.invalidate('b')
  expect(cache.find(update, START_US)).not.toHaveProperty('decidedAtUs')
  expect(cache.find(update, START_US)).toMatchObject({ admitted: false })
  cache.invalidate('a')
  expect(cache.find(update, START_US)).toBeUndefined()
})
