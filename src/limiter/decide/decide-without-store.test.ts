// Calls that are decided without the store: because it is away, or because the answer is known.
import { describe, expect, test } from '@jest/globals'
import { limiterOf, perClient } from '../../../test/parts/decide-limits.ts'

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

describe('while the store is away', () => {
  const modes = `
domain: shop
descriptors:
  - {key: local, rate_limit: {unit: minute, requests_per_unit: 4}}
  - {key: allow, rate_limit: {unit: minute, requests_per_unit: 4, on_store_error: allow}}
  - {key: deny, rate_limit: {unit: minute, requests_per_unit: 4, on_store_error: deny}}
`
  test('each rule does as it says, and all is counted as fallback', async () => {
    const { ask, store, recorded } = limiterOf(modes)
    store.isAway = true
    const allowed = await ask({ allow: '' })
    expect([allowed.code, allowed.statuses[0]?.limitRemaining]).toEqual(['OK', 4])
    const denied = await ask({ deny: '' })
    expect([denied.code, Object.fromEntries(denied.responseHeaders)['Retry-After']]).toEqual([
      'OVER_LIMIT',
      '1',
    ])
    expect((await ask({ local: '' })).statuses[0]?.limitRemaining).toBe(3)
    expect(recorded.map(([, by]) => by)).toEqual(['fallback', 'fallback', 'fallback'])
  })

  test('a local limit is the share of one replica, at least one', async () => {
    const { ask, store } = limiterOf(modes, { replicas: 3 })
    store.isAway = true
    const codes = [(await ask({ local: '' })).code, (await ask({ local: '' })).code]
    expect(codes).toEqual(['OK', 'OVER_LIMIT'])
  })

  test.each([
    ['fixed_window', 60, 14],
    ['sliding_window_log', 60, 14],
    ['sliding_window_counter', 60, 14],
    ['token_bucket', 60, 14],
    ['fixed_window', 101, 1],
    ['fixed_window', 102, 0],
  ])('a share is of what the store last said remains: %s, %i used', async (...row) => {
    const [algorithm, used, admitted] = row
    const { ask, store, clock } = limiterOf(
      `
domain: shop
descriptors:
  - key: client
    rate_limit: {algorithm: ${algorithm}, unit: day, requests_per_unit: 102}
`,
      { replicas: 3 },
    )
    const admittedNow = async () => {
      let count = 0
      while (count < 200 && (await ask({ client: 'a' })).code === 'OK') count++
      return count
    }
    for (let hit = 0; hit < used; hit++) await ask({ client: 'a' })
    store.isAway = true
    expect(await admittedNow()).toBe(admitted)
    clock.nowUs += 2 * 86_400_000_000 // the whole limit is free again
    expect(await admittedNow()).toBe(34)
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
  ])('of %i requests and a burst of %i among %i replicas each has %i and %i', async (...row) => {
    const [requests, burst, replicas, requestsEach, burstEach] = row
    const { ask, store, charged } = limiterOf(
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
    store.isAway = true
    const admitted = async (key: string) => {
      let count = 0
      while (count < 20 && (await ask({ [key]: '' })).code === 'OK') count++
      return count
    }
    expect(await admitted('window')).toBe(requestsEach)
    expect(await admitted('bucket')).toBe(Math.max(1, burstEach))
    expect(charged[0]?.[0]?.limit.requests).toBe(requestsEach)
  })

  test('a rule that allows reports its burst, and one that denies takes hits back', async () => {
    const { ask, store } = limiterOf(`
domain: shop
descriptors:
  - key: allow
    rate_limit:
      algorithm: token_bucket
      unit: hour
      requests_per_unit: 4
      burst: 9
      on_store_error: allow
  - {key: deny, rate_limit: {unit: minute, requests_per_unit: 4, on_store_error: deny}}
`)
    store.isAway = true
    expect((await ask({ allow: '' })).statuses[0]?.limitRemaining).toBe(9)
    const refund = { entries: [{ key: 'deny', value: '' }], hits: -1 }
    expect((await ask(refund)).code).toBe('OK')
  })

  test('the share of a limit is made once, and each limit has its own', async () => {
    const { ask, store, charged } = limiterOf(modes, { replicas: 2 })
    store.isAway = true
    for (const value of ['a', 'b']) await ask({ local: value })
    const override = { requestsPerUnit: 8, unit: 'HOUR' } as const
    await ask({ entries: [{ key: 'local', value: 'c' }], override })
    const [first, second, brought] = charged.flat().map(({ limit }) => limit)
    expect([first?.requests, brought?.requests]).toEqual([2, 4])
    expect(second).toBe(first)
  })

  test('a spent quota beside one that lets pass leaves the other limits in force', async () => {
    const { ask, store } = limiterOf(quotas)
    store.isAway = true
    const codes: string[] = []
    for (let n = 0; n < 5; n++) {
      codes.push((await ask({ spent: '' }, { open: '' }, { rate: '' })).code)
    }
    expect(codes).toEqual(['OK', 'OK', 'OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT'])
  })
})

describe('what is known to be over its limit', () => {
  test('is denied without the store, and asked again after a second', async () => {
    const { ask, store, clock, recorded } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 6; n++) await ask({ client: 'a' })
    expect(store.calls).toHaveLength(3)
    expect(recorded.slice(3).map(([, by]) => by)).toEqual([
      'deny-cache',
      'deny-cache',
      'deny-cache',
    ])
    clock.nowUs += 1_000_000
    expect((await ask({ client: 'a' })).code).toBe('OVER_LIMIT')
    expect(store.calls).toHaveLength(4)
  })

  test('denies the call: what takes nothing from such a call is only looked at', async () => {
    const { ask, store } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 3; n++) await ask({ client: 'a' })
    const denied = await ask({ client: 'a' }, { total: '' })
    expect(store.calls.at(-1)?.map(({ cost }) => cost)).toEqual([0])
    expect(denied.statuses.map(({ code, limitRemaining }) => [code, limitRemaining])).toEqual([
      ['OVER_LIMIT', 0],
      ['OK', 10],
    ])
  })

  test('of a denied call what counts all the same, or is given back, is charged', async () => {
    const text = `${perClient}
  - {key: window, rate_limit: {unit: day, requests_per_unit: 9}}
`
    const { ask, store } = limiterOf(text, { hasDenyCache: true })
    for (let n = 0; n < 3; n++) await ask({ client: 'a' })
    const refund = { entries: [{ key: 'total', value: '' }], hits: -2 }
    await ask({ client: 'a' }, { window: '' }, refund)
    expect(store.calls.at(-1)?.map(({ cost }) => cost)).toEqual([1, -2])
  })

  test('stays known after a look', async () => {
    const { ask, store } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 3; n++) await ask({ client: 'a' })
    await ask({ entries: [{ key: 'client', value: 'a' }], hits: 0 })
    const asked = store.calls.length
    expect((await ask({ client: 'a' })).code).toBe('OVER_LIMIT')
    expect(store.calls).toHaveLength(asked)
  })

  test('learns nothing from a counter that one call charges twice', async () => {
    const { ask } = limiterOf(perClient, { hasDenyCache: true })
    for (let n = 0; n < 9; n++) await ask({ total: '' })
    expect((await ask({ total: '' }, { total: '' })).code).toBe('OVER_LIMIT')
    expect((await ask({ total: '' })).code).toBe('OK')
  })

  test.each([
    ['a limit that the caller raised', 9, undefined],
    ['a refund', 1, -1],
  ])('is asked of the store after %s', async (_, requestsPerUnit, refund) => {
    const { ask } = limiterOf(perClient, { hasDenyCache: true, denyConsumes: false })
    const own = (requests: number, hits?: number) => ({
      entries: [{ key: 'x', value: 'a' }],
      override: { requestsPerUnit: requests, unit: 'HOUR' } as const,
      hits,
    })
    for (let n = 0; n < 2; n++) await ask(own(1))
    expect((await ask(own(1))).code).toBe('OVER_LIMIT')
    if (refund !== undefined) await ask(own(1, refund))
    expect((await ask(own(requestsPerUnit))).code).toBe('OK')
  })

  test('a spent quota that is known takes nothing from a bucket beside it', async () => {
    const { ask, store } = limiterOf(quotas, { hasDenyCache: true })
    await ask({ spent: '' })
    for (let n = 0; n < 2; n++) await ask({ spent: '' })
    expect((await ask({ spent: '' }, { rate: '' })).code).toBe('OVER_LIMIT')
    expect(store.calls.at(-1)?.map(({ cost }) => cost)).toEqual([0])
  })
})

describe('metadata', () => {
  test('says that the limiter answered, and on demand what was asked', async () => {
    const text = `${perClient}
  - key: marked
    metadata: {tier: gold}
    rate_limit: {unit: minute, requests_per_unit: 2}
`
    expect((await limiterOf(text).ask({ marked: 'x' })).dynamicMetadata).toEqual({ rls: 'ok' })
    const { ask } = limiterOf(text, { isMetadataWhole: true })
    expect((await ask({ marked: 'x' })).dynamicMetadata).toEqual({
      rls: 'ok',
      domain: 'shop',
      descriptors: [{ entries: ['marked=x'] }],
      hitsAddend: 1,
      metadata: { tier: 'gold' },
    })
  })

  test('is left out, denials included, where it is switched off', async () => {
    const { ask } = limiterOf(perClient, { hasMetadata: false })
    for (let n = 0; n < 3; n++) {
      expect((await ask({ client: 'a' })).dynamicMetadata).toBeUndefined()
    }
    const whole = limiterOf(perClient, { hasMetadata: false, isMetadataWhole: true })
    const { dynamicMetadata } = await whole.ask({ client: 'a' })
    expect(Object.keys(dynamicMetadata ?? {})).toEqual(['domain', 'descriptors', 'hitsAddend'])
  })

  test('says so whatever was asked and decided, lest Envoy take the limiter for dead', async () => {
    const { ask, decide, store } = limiterOf(perClient)
    const verdicts = [await ask({ other: 'no rule' })]
    verdicts.push(await decide({ domain: 'none', descriptors: [{ entries: [] }], hits: 1 }))
    for (let hit = 0; hit < 3; hit++) verdicts.push(await ask({ client: 'a' }))
    store.isAway = true
    verdicts.push(await ask({ client: 'b' }))
    expect(verdicts.map(({ code }) => code)).toEqual(['OK', 'OK', 'OK', 'OK', 'OVER_LIMIT', 'OK'])
    const said = verdicts.map(({ dynamicMetadata }) => dynamicMetadata)
    const answered = { rls: 'ok' }
    const denied = { rls: 'ok', rule: 'shop.client' }
    expect(said).toEqual([answered, answered, answered, answered, denied, answered])
  })
})
