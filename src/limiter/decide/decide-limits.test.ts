// Calls from descriptors to verdict, with real rules and counters in memory.
import { describe, expect, test } from '@jest/globals'
import {
  START_US,
  entriesOf,
  limiterOf,
  perClient,
} from '../../../test/kit/ratelimit/decide-limits.ts'
import type { Descriptor } from '../../limits/descriptor.ts'
import { LimitRequestError } from '../../limits/verdict.ts'

describe('a call', () => {
  test('is admitted up to its limit, then denied with Retry-After and a body', async () => {
    const { request } = limiterOf(perClient)
    const [first, second, third] = [
      await request({ client: 'a' }),
      await request({ client: 'a' }),
      await request({ client: 'a' }),
    ]
    expect([first, second, third].map(({ code }) => code)).toEqual(['OK', 'OK', 'OVER_LIMIT'])
    expect(first.statuses[0]).toMatchObject({ code: 'OK', limitRemaining: 1 })
    expect(Object.fromEntries(first.responseHeaders)).toMatchObject({
      'X-RateLimit-Limit': '2',
      'X-RateLimit-Remaining': '1',
    })
    expect(first.body).toBeUndefined()
    const headers = Object.fromEntries(third.responseHeaders)
    expect(headers).toMatchObject({
      'X-RateLimit-Remaining': '0',
      'Content-Type': 'application/problem+json',
    })
    const reset = Number(headers['X-RateLimit-Reset'])
    expect(reset - START_US / 1_000_000).toBe(Number(headers['Retry-After']))
    expect(third.body).toBe('{"rule":"shop.client"}')
    expect(await request({ client: 'b' })).toMatchObject({ code: 'OK' })
  })

  test('with several descriptors is decided in one step, and denied if one is denied', async () => {
    const { request, store } = limiterOf(perClient)
    await request({ client: 'a' }, { total: '' })
    await request({ client: 'a' }, { total: '' })
    const denied = await request({ client: 'a' }, { total: '' })
    expect(store.calls.map((updates) => updates.length)).toEqual([2, 2, 2])
    expect(denied.statuses.map(({ code }) => code)).toEqual(['OVER_LIMIT', 'OK'])
    // The bucket does not count a call that another limit denies.
    expect(denied.statuses[1]?.limitRemaining).toBe(8)
  })

  test('that matches no rule is admitted without a store call', async () => {
    const { request, decide, store, unknownDomains } = limiterOf(perClient)
    expect(await request({ other: 'x' })).toMatchObject({
      code: 'OK',
      statuses: [{ code: 'OK', currentLimit: undefined }],
      responseHeaders: [],
    })
    await decide({ domain: 'elsewhere', descriptors: [entriesOf({ client: 'a' })], hits: 1 })
    expect([store.calls, unknownDomains]).toEqual([[], ['elsewhere']])
  })

  test.each([
    ['no domain', { domain: '', descriptors: [entriesOf({ a: 'b' })] }, 'domain must not be empty'],
    ['no descriptors', { domain: 'shop', descriptors: [] }, 'descriptor list must not be empty'],
  ])('with %s is rejected', async (_, invalid, message) => {
    const { decide } = limiterOf(perClient)
    const decided = decide({ ...invalid, hits: 1 })
    await expect(decided).rejects.toThrow(LimitRequestError)
    await expect(decided).rejects.toThrow(`rate limit ${message}`)
  })

  test('may peek, refund, and consume several hits', async () => {
    const { request } = limiterOf(perClient)
    const hits = async (n: number) => {
      const verdict = await request(entriesOf({ client: 'a' }, n))
      return [verdict.code, verdict.statuses[0]?.limitRemaining]
    }
    expect(await hits(0)).toEqual(['OK', 2])
    expect(await hits(2)).toEqual(['OK', 0])
    expect(await hits(-1)).toEqual(['OK', 1])
    expect(await hits(1)).toEqual(['OK', 0])
    expect(await hits(1)).toEqual(['OVER_LIMIT', 0])
  })

  test('refunds hits although another limit denies the call', async () => {
    const { request } = limiterOf(perClient)
    await request(entriesOf({ total: '' }, 3))
    const denied = await request(entriesOf({ client: 'a' }, 3), entriesOf({ total: '' }, -2))
    expect([denied.code, denied.statuses[1]?.limitRemaining]).toEqual(['OVER_LIMIT', 9])
  })

  test('may override the limit; the override has its own counter', async () => {
    const { request } = limiterOf(perClient)
    const override = { requestsPerUnit: 1, unit: 'HOUR' } as const
    const own: Descriptor = { ...entriesOf({ client: 'a' }), override }
    expect((await request(own)).code).toBe('OK')
    expect(await request(own)).toMatchObject({
      code: 'OVER_LIMIT',
      statuses: [{ currentLimit: { requestsPerUnit: 1, unit: 'HOUR' } }],
    })
    expect((await request({ client: 'a' })).statuses[0]?.limitRemaining).toBe(1)
  })
})

describe('a limit override', () => {
  const one = { requestsPerUnit: 1, unit: 'HOUR' } as const
  const own = (hits?: number): Descriptor => ({ ...entriesOf({ x: 'a' }, hits), override: one })
  const costOfRaised = async (denyConsumes: boolean) => {
    const { request } = limiterOf(perClient, { denyConsumes })
    for (let call = 0; call < 5; call++) await request(own())
    const raised = { ...own(), override: { ...one, requestsPerUnit: 9 } }
    return 9 - ((await request(raised)).statuses[0]?.limitRemaining ?? 0)
  }

  test('counts denied hits, unless STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is set', async () => {
    expect([await costOfRaised(true), await costOfRaised(false)]).toEqual([6, 2])
  })

  test('counts hits that another limit denies, unless that setting is set', async () => {
    const usedBy = async (denyConsumes: boolean) => {
      const { request } = limiterOf(perClient, { denyConsumes })
      const denied = await request(entriesOf({ client: 'a' }, 3), own())
      expect(denied.code).toBe('OVER_LIMIT')
      return (await request(own())).code
    }
    expect([await usedBy(true), await usedBy(false)]).toEqual(['OVER_LIMIT', 'OK'])
  })
})

describe('rules', () => {
  test('with several limits deny when one of them is exhausted, and report it', async () => {
    const { request, clock } = limiterOf(`
domain: shop
descriptors:
  - key: client
    rate_limit:
      - {name: per-second, unit: second, requests_per_unit: 2}
      - {name: per-hour, unit: hour, requests_per_unit: 3}
`)
    const codes = [(await request({ client: 'a' })).code, (await request({ client: 'a' })).code]
    expect(codes).toEqual(['OK', 'OK'])
    expect((await request({ client: 'a' })).body).toContain('per-second')
    clock.nowUs += 1_000_000
    expect((await request({ client: 'a' })).body).toContain('per-hour')
  })

  test('replace other rules of the same call by name', async () => {
    const { request } = limiterOf(`
domain: shop
descriptors:
  - key: address
    rate_limit: {name: by-address, unit: minute, requests_per_unit: 0}
  - key: api_key
    value: listed
    rate_limit: {unit: minute, requests_per_unit: 5, replaces: [{name: by-address}]}
`)
    expect((await request({ address: 'a' })).code).toBe('OVER_LIMIT')
    expect((await request({ address: 'a' }, { api_key: 'other' })).code).toBe('OVER_LIMIT')
    const replaced = await request({ address: 'a' }, { api_key: 'listed' })
    expect([replaced.code, replaced.statuses[0]?.currentLimit]).toEqual(['OK', undefined])
  })

  const shadowRules = `
domain: shop
descriptors:
  - key: client
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 0}
`
  test('in shadow mode deny nothing and set no headers, but are counted', async () => {
    const { request, recorded } = limiterOf(shadowRules)
    expect(await request({ client: 'a' })).toMatchObject({ code: 'OK', responseHeaders: [] })
    expect(recorded).toEqual([['shop.client', 'store', false]])
  })

  test('that are all in shadow mode admit the call, but its status is OVER_LIMIT', async () => {
    const { request, shadowed } = limiterOf(shadowRules.replace('shadow_mode: true', ''), {
      isShadow: true,
    })
    expect(await request({ client: 'a' })).toMatchObject({
      code: 'OK',
      statuses: [{ code: 'OVER_LIMIT' }],
    })
    expect(shadowed()).toBe(1)
  })

  test('in shadow mode, and peeks, set only the headers of envoyproxy/ratelimit', async () => {
    const rules = `${shadowRules}
  - {key: seen, rate_limit: {unit: minute, requests_per_unit: 4}}
`
    const { request } = limiterOf(rules, { hasReferenceHeaders: true })
    const { responseHeaders: shadowed } = await request({ client: 'a' })
    expect(shadowed).toEqual([
      ['RateLimit-Limit', '0'],
      ['RateLimit-Remaining', '0'],
      ['RateLimit-Reset', String(60 - ((START_US / 1_000_000) % 60))],
    ])
    const peeked = await request(entriesOf({ seen: 'a' }, 0))
    expect(peeked.responseHeaders.map(([, value]) => value).slice(0, 2)).toEqual(['4', '4'])
    const both = Object.fromEntries((await request({ client: 'a' }, { seen: 'a' })).responseHeaders)
    expect(both).toMatchObject({
      'RateLimit-Limit': '0',
      'RateLimit-Remaining': '0',
      'X-RateLimit-Limit': '4',
      'X-RateLimit-Remaining': '3',
    })
  })

  test('that are unlimited report the largest 32-bit remainder', async () => {
    const { request } = limiterOf(`
domain: shop
descriptors:
  - key: client
    rate_limit: {unlimited: true}
`)
    expect((await request({ client: 'a' })).statuses[0]).toMatchObject({
      limitRemaining: 2 ** 32 - 1,
    })
  })
})
