// Calls that are decided without the store: it is unavailable, or the denial is cached.
import { describe, expect, test } from '@jest/globals'
import { limiterOf, perClient } from '../../../test/kit/ratelimit/decide-limits.ts'

const quotas = `
domain: shop
descriptors:
  - {key: spent, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - key: open
    quota_mode: true
    rate_limit: {unit: day, requests_per_unit: 1, on_store_error: allow}
  - key: rate
    rate_limit: {algorithm: token_bucket, unit: hour, requests_per_unit: 1, burst: 2}
`

describe('while the store is unavailable', () => {
  const modes = `
domain: shop
descriptors:
  - {key: local, rate_limit: {unit: minute, requests_per_unit: 4}}
  - {key: allow, rate_limit: {unit: minute, requests_per_unit: 4, on_store_error: allow}}
  - {key: deny, rate_limit: {unit: minute, requests_per_unit: 4, on_store_error: deny}}
`
  test('each rule applies its on_store_error, and is counted as fallback', async () => {
    const { request, store, recorded } = limiterOf(modes)
    store.isUnavailable = true
    const allowed = await request({ allow: '' })
    expect([allowed.code, allowed.statuses[0]?.limitRemaining]).toEqual(['OK', 4])
    const denied = await request({ deny: '' })
    expect([denied.code, Object.fromEntries(denied.responseHeaders)['Retry-After']]).toEqual([
      'OVER_LIMIT',
      '1',
    ])
    expect((await request({ local: '' })).statuses[0]?.limitRemaining).toBe(3)
    expect(recorded.map(([, source]) => source)).toEqual(['fallback', 'fallback', 'fallback'])
  })

  test('a local limit is the share of one replica, at least 1', async () => {
    const { request, store } = limiterOf(modes, { replicas: 3 })
    store.isUnavailable = true
    const codes = [(await request({ local: '' })).code, (await request({ local: '' })).code]
    expect(codes).toEqual(['OK', 'OVER_LIMIT'])
  })

  test.each([
    // requests, burst, replicas → the share of each
    [0, 0, 3, 0, 0],
    [1, 1, 3, 1, 1],
    [2, 2, 3, 1, 1],
    [3, 5, 3, 1, 1],
    [5, 6, 3, 1, 2],
    [6, 7, 2, 3, 3],
    [7, 9, 1, 7, 9],
  ])('%i requests and a burst of %i, %i replicas: each has %i and %i', async (...row) => {
    const [requests, burst, replicas, requestsEach, burstEach] = row
    const { request, store, countedLocally } = limiterOf(
      `
domain: shop
descriptors:
  - {key: window, rate_limit: {unit: hour, requests_per_unit: ${requests}}}
  - key: bucket
    rate_limit:
      algorithm: token_bucket
      unit: hour
      requests_per_unit: ${Math.max(1, requests)}
      burst: ${Math.max(1, burst)}
`,
      { replicas },
    )
    store.isUnavailable = true
    const admitted = async (key: string) => {
      let count = 0
      while (count < 20 && (await request({ [key]: '' })).code === 'OK') count++
      return count
    }
    expect(await admitted('window')).toBe(requestsEach)
    expect(await admitted('bucket')).toBe(Math.max(1, burstEach))
    expect(countedLocally[0]?.[0]?.limit.requests).toBe(requestsEach)
  })

  test.each([9, 2])(
    'a rule with on_store_error: allow reports its burst, %i, as remaining',
    async (burst) => {
      const { request, store } = limiterOf(`
domain: shop
descriptors:
  - key: allow
    rate_limit:
      algorithm: token_bucket
      unit: hour
      requests_per_unit: 4
      burst: ${burst}
      on_store_error: allow
`)
      store.isUnavailable = true
      expect((await request({ allow: '' })).statuses[0]?.limitRemaining).toBe(burst)
    },
  )

  test('the share of a limit is created once, and each limit has its own', async () => {
    const { request, store, countedLocally } = limiterOf(modes, { replicas: 2 })
    store.isUnavailable = true
    for (const value of ['a', 'b']) await request({ local: value })
    const override = { requestsPerUnit: 8, unit: 'HOUR' } as const
    await request({ entries: [{ key: 'local', value: 'c' }], override })
    const [first, second, overridden] = countedLocally.flat().map(({ limit }) => limit)
    expect([first?.requests, overridden?.requests]).toEqual([2, 4])
    expect(second).toBe(first)
  })

  test('a call that a rule denies counts refunds, but consumes from no other limit', async () => {
    const { request, store } = limiterOf(`${modes}
  - key: bucket
    rate_limit: {algorithm: token_bucket, unit: hour, requests_per_unit: 1, burst: 2}
`)
    store.isUnavailable = true
    const refund = { entries: [{ key: 'deny', value: '' }], hits: -1 }
    expect((await request(refund)).code).toBe('OK')
    for (let n = 0; n < 3; n++) {
      const denied = await request({ deny: '' }, { bucket: '' }, { local: '' })
      expect(denied.statuses.map(({ code }) => code)).toEqual(['OVER_LIMIT', 'OK', 'OK'])
    }
    expect((await request({ bucket: '' })).statuses[0]?.limitRemaining).toBe(1)
    // A fixed window also counts the hits of denied calls.
    expect((await request({ local: '' })).statuses[0]?.limitRemaining).toBe(0)
  })

  test.each([
    ['denied or exhausted', { closed: '' }],
    ['exhausted', { total: '' }],
  ])('a call whose quotas are all %s consumes nothing', async (_, first) => {
    const { request, store } = limiterOf(`${quotas}
  - key: closed
    quota_mode: true
    rate_limit: {unit: day, requests_per_unit: 1, on_store_error: deny}
  - {key: total, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
`)
    store.isUnavailable = true
    const call = async () => (await request(first, { spent: '' }, { rate: '' })).code
    expect([await call(), await call(), await call()]).toEqual(['OK', 'OVER_LIMIT', 'OVER_LIMIT'])
    expect((await request({ rate: '' })).code).toBe('OK')
  })

  test('an exhausted quota does not disable other limits while another quota admits', async () => {
    const { request, store } = limiterOf(quotas)
    store.isUnavailable = true
    const codes: string[] = []
    for (let n = 0; n < 5; n++) {
      codes.push((await request({ spent: '' }, { open: '' }, { rate: '' })).code)
    }
    expect(codes).toEqual(['OK', 'OK', 'OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT'])
  })
})

describe('a cached denial', () => {
  test('denies without the store, and expires after 1 s', async () => {
    const { request, store, clock, recorded } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 6; n++) await request({ client: 'a' })
    expect(store.calls).toHaveLength(3)
    expect(recorded.slice(3).map(([, source]) => source)).toEqual([
      'deny-cache',
      'deny-cache',
      'deny-cache',
    ])
    clock.nowUs += 1_000_000
    expect((await request({ client: 'a' })).code).toBe('OVER_LIMIT')
    expect(store.calls).toHaveLength(4)
  })

  test('denies the call: limits that do not count denied hits are only peeked', async () => {
    const { request, store } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 3; n++) await request({ client: 'a' })
    const denied = await request({ client: 'a' }, { total: '' })
    expect(store.calls.at(-1)?.map(({ hits }) => hits)).toEqual([0])
    expect(denied.statuses.map(({ code, limitRemaining }) => [code, limitRemaining])).toEqual([
      ['OVER_LIMIT', 0],
      ['OK', 10],
    ])
  })

  test('denies the call: limits that count denied hits, and refunds, are counted', async () => {
    const rules = `${perClient}
  - {key: window, rate_limit: {unit: day, requests_per_unit: 9}}
`
    const { request, store } = limiterOf(rules, { hasDenyCache: true })
    for (let n = 0; n < 3; n++) await request({ client: 'a' })
    const refund = { entries: [{ key: 'total', value: '' }], hits: -2 }
    await request({ client: 'a' }, { window: '' }, refund)
    expect(store.calls.at(-1)?.map(({ hits }) => hits)).toEqual([1, -2])
  })

  test('stays cached after a peek', async () => {
    const { request, store } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 3; n++) await request({ client: 'a' })
    await request({ entries: [{ key: 'client', value: 'a' }], hits: 0 })
    const callsBefore = store.calls.length
    expect((await request({ client: 'a' })).code).toBe('OVER_LIMIT')
    expect(store.calls).toHaveLength(callsBefore)
  })

  test('is not stored for a counter that one call hits twice', async () => {
    const { request } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 9; n++) await request({ total: '' })
    expect((await request({ total: '' }, { total: '' })).code).toBe('OVER_LIMIT')
    expect((await request({ total: '' })).code).toBe('OK')
  })

  test.each([
    ['an override that raises the limit', 9, undefined],
    ['a refund', 1, -1],
  ])('is not used after %s', async (_, requestsPerUnit, refund) => {
    const { request } = limiterOf(perClient, { hasDenyCache: true, denyConsumes: false })
    const own = (requests: number, hits?: number) => ({
      entries: [{ key: 'x', value: 'a' }],
      override: { requestsPerUnit: requests, unit: 'HOUR' } as const,
      hits,
    })
    for (let n = 0; n < 2; n++) await request(own(1))
    expect((await request(own(1))).code).toBe('OVER_LIMIT')
    if (refund !== undefined) await request(own(1, refund))
    expect((await request(own(requestsPerUnit))).code).toBe('OK')
  })

  test('of an exhausted quota consumes nothing from another bucket of the call', async () => {
    const { request, store } = limiterOf(quotas, { hasDenyCache: true })
    await request({ spent: '' })
    for (let n = 0; n < 2; n++) await request({ spent: '' })
    expect((await request({ spent: '' }, { rate: '' })).code).toBe('OVER_LIMIT')
    expect(store.calls.at(-1)?.map(({ hits }) => hits)).toEqual([0])
  })
})

describe('metadata', () => {
  test('marks the response, and includes the request if enabled', async () => {
    const rules = `${perClient}
  - key: marked
    metadata: {tier: gold}
    rate_limit: {unit: minute, requests_per_unit: 2}
`
    expect((await limiterOf(rules).request({ marked: 'x' })).dynamicMetadata).toEqual({ rls: 'ok' })
    const { request } = limiterOf(rules, { hasReferenceMetadata: true })
    expect((await request({ marked: 'x' })).dynamicMetadata).toEqual({
      rls: 'ok',
      domain: 'shop',
      descriptors: [{ entries: ['marked=x'] }],
      hitsAddend: 1,
      metadata: { tier: 'gold' },
    })
  })

  test('is absent, even from denials, if disabled', async () => {
    const { request } = limiterOf(perClient, { hasMetadata: false })
    for (let n = 0; n < 3; n++) {
      expect((await request({ client: 'a' })).dynamicMetadata).toBeUndefined()
    }
    const whole = limiterOf(perClient, { hasMetadata: false, hasReferenceMetadata: true })
    const { dynamicMetadata } = await whole.request({ client: 'a' })
    expect(Object.keys(dynamicMetadata ?? {})).toEqual(['domain', 'descriptors', 'hitsAddend'])
  })

  test('marks every response, so that Envoy does not consider the limiter failed', async () => {
    const { request, decide, store } = limiterOf(perClient)
    const verdicts = [await request({ other: 'no rule' })]
    verdicts.push(await decide({ domain: 'none', descriptors: [{ entries: [] }], hits: 1 }))
    for (let hit = 0; hit < 3; hit++) verdicts.push(await request({ client: 'a' }))
    store.isUnavailable = true
    verdicts.push(await request({ client: 'b' }))
    expect(verdicts.map(({ code }) => code)).toEqual(['OK', 'OK', 'OK', 'OK', 'OVER_LIMIT', 'OK'])
    const metadata = verdicts.map(({ dynamicMetadata }) => dynamicMetadata)
    const marked = { rls: 'ok' }
    const denied = { rls: 'ok', rule: 'shop.client' }
    expect(metadata).toEqual([marked, marked, marked, marked, denied, marked])
  })
})
