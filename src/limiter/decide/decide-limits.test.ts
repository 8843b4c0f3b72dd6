// A call from its descriptors to its verdict: over real rules and counters in memory.
import { describe, expect, test } from '@jest/globals'
import { BEGUN_US, entriesOf, limiterOf, perClient } from '../../../test/parts/decide-limits.ts'
import type { Descriptor } from '../../limits/descriptor.ts'
import { LimitRequestError } from '../../limits/verdict.ts'

describe('a call', () => {
  test('is let pass up to its limit; then it is denied with a wait and a body', async () => {
    const { ask } = limiterOf(perClient)
    const [first, second, third] = [
      await ask({ client: 'a' }),
      await ask({ client: 'a' }),
      await ask({ client: 'a' }),
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
    expect(reset - BEGUN_US / 1_000_000).toBe(Number(headers['Retry-After']))
    expect(third.body).toBe('{"rule":"shop.client"}')
    expect(await ask({ client: 'b' })).toMatchObject({ code: 'OK' })
  })

  test('of several descriptors is decided in one go, and denied if one is', async () => {
    const { ask, store } = limiterOf(perClient)
    await ask({ client: 'a' }, { total: '' })
    await ask({ client: 'a' }, { total: '' })
    const denied = await ask({ client: 'a' }, { total: '' })
    expect(store.calls.map((charges) => charges.length)).toEqual([2, 2, 2])
    expect(denied.statuses.map(({ code }) => code)).toEqual(['OVER_LIMIT', 'OK'])
    // The bucket does not pay for a call that another limit has denied.
    expect(denied.statuses[1]?.limitRemaining).toBe(8)
  })

  test('that no rule knows is let pass without asking the store', async () => {
    const { ask, decide, store, unknownDomains } = limiterOf(perClient)
    expect(await ask({ other: 'x' })).toMatchObject({
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
  ])('with %s is refused', async (_, request, message) => {
    const { decide } = limiterOf(perClient)
    const asked = decide({ ...request, hits: 1 })
    await expect(asked).rejects.toThrow(LimitRequestError)
    await expect(asked).rejects.toThrow(`rate limit ${message}`)
  })

  test('may look, give back, and take several', async () => {
    const { ask } = limiterOf(perClient)
    const hits = async (n: number) => {
      const verdict = await ask(entriesOf({ client: 'a' }, n))
      return [verdict.code, verdict.statuses[0]?.limitRemaining]
    }
    expect(await hits(0)).toEqual(['OK', 2])
    expect(await hits(2)).toEqual(['OK', 0])
    expect(await hits(-1)).toEqual(['OK', 1])
    expect(await hits(1)).toEqual(['OK', 0])
    expect(await hits(1)).toEqual(['OVER_LIMIT', 0])
  })

  test('gives hits back although another limit denies the call', async () => {
    const { ask } = limiterOf(perClient)
    await ask(entriesOf({ total: '' }, 3))
    const denied = await ask(entriesOf({ client: 'a' }, 3), entriesOf({ total: '' }, -2))
    expect([denied.code, denied.statuses[1]?.limitRemaining]).toEqual(['OVER_LIMIT', 9])
  })

  test('brings a limit of its own, counted apart from the rules', async () => {
    const { ask } = limiterOf(perClient)
    const override = { requestsPerUnit: 1, unit: 'HOUR' } as const
    const own: Descriptor = { ...entriesOf({ client: 'a' }), override }
    expect((await ask(own)).code).toBe('OK')
    expect(await ask(own)).toMatchObject({
      code: 'OVER_LIMIT',
      statuses: [{ currentLimit: { requestsPerUnit: 1, unit: 'HOUR' } }],
    })
    expect((await ask({ client: 'a' })).statuses[0]?.limitRemaining).toBe(1)
  })
})

describe('a limit that the caller brings', () => {
  const one = { requestsPerUnit: 1, unit: 'HOUR' } as const
  const own = (hits?: number): Descriptor => ({ ...entriesOf({ x: 'a' }, hits), override: one })
  const costOfRaised = async (denyConsumes: boolean) => {
    const { ask } = limiterOf(perClient, { denyConsumes })
    for (let call = 0; call < 5; call++) await ask(own())
    const raised = { ...own(), override: { ...one, requestsPerUnit: 9 } }
    return 9 - ((await ask(raised)).statuses[0]?.limitRemaining ?? 0)
  }

  test('counts what it denies, unless STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', async () => {
    expect([await costOfRaised(true), await costOfRaised(false)]).toEqual([6, 2])
  })

  test('counts what another limit denies, unless so', async () => {
    const usedBy = async (denyConsumes: boolean) => {
      const { ask } = limiterOf(perClient, { denyConsumes })
      const denied = await ask(entriesOf({ client: 'a' }, 3), own())
      expect(denied.code).toBe('OVER_LIMIT')
      return (await ask(own())).code
    }
    expect([await usedBy(true), await usedBy(false)]).toEqual(['OVER_LIMIT', 'OK'])
  })
})

describe('rules', () => {
  test('with several limits deny by the first that is used up, and tell of it', async () => {
    const { ask, clock } = limiterOf(`
domain: shop
descriptors:
  - key: client
    rate_limit:
      - {name: per-second, unit: second, requests_per_unit: 2}
      - {name: per-hour, unit: hour, requests_per_unit: 3}
`)
    const codes = [(await ask({ client: 'a' })).code, (await ask({ client: 'a' })).code]
    expect(codes).toEqual(['OK', 'OK'])
    expect((await ask({ client: 'a' })).body).toContain('per-second')
    clock.nowUs += 1_000_000
    expect((await ask({ client: 'a' })).body).toContain('per-hour')
  })

  test('replace others of the same call by name', async () => {
    const { ask } = limiterOf(`
domain: shop
descriptors:
  - key: address
    rate_limit: {name: by-address, unit: minute, requests_per_unit: 0}
  - key: api_key
    value: known
    rate_limit: {unit: minute, requests_per_unit: 5, replaces: [{name: by-address}]}
`)
    expect((await ask({ address: 'a' })).code).toBe('OVER_LIMIT')
    expect((await ask({ address: 'a' }, { api_key: 'unknown' })).code).toBe('OVER_LIMIT')
    const replaced = await ask({ address: 'a' }, { api_key: 'known' })
    expect([replaced.code, replaced.statuses[0]?.currentLimit]).toEqual(['OK', undefined])
  })

  const shadow = `
domain: shop
descriptors:
  - key: client
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 0}
`
  test('in shadow deny nothing and say nothing to the client, but are counted', async () => {
    const { ask, recorded } = limiterOf(shadow)
    expect(await ask({ client: 'a' })).toMatchObject({ code: 'OK', responseHeaders: [] })
    expect(recorded).toEqual([['shop.client', 'store', false]])
  })

  test('all in shadow: the statuses tell, the call passes and is counted', async () => {
    const { ask, shadowed } = limiterOf(shadow.replace('shadow_mode: true', ''), { isShadow: true })
    expect(await ask({ client: 'a' })).toMatchObject({
      code: 'OK',
      statuses: [{ code: 'OVER_LIMIT' }],
    })
    expect(shadowed()).toBe(1)
  })

  test('in shadow, and looks, are told by the reference’s headers alone', async () => {
    const text = `${shadow}
  - {key: seen, rate_limit: {unit: minute, requests_per_unit: 4}}
`
    const { ask } = limiterOf(text, { hasReferenceHeaders: true })
    const { responseHeaders: shadowed } = await ask({ client: 'a' })
    expect(shadowed).toEqual([
      ['RateLimit-Limit', '0'],
      ['RateLimit-Remaining', '0'],
      ['RateLimit-Reset', String(60 - ((BEGUN_US / 1_000_000) % 60))],
    ])
    const looked = await ask(entriesOf({ seen: 'a' }, 0))
    expect(looked.responseHeaders.map(([, value]) => value).slice(0, 2)).toEqual(['4', '4'])
    const both = Object.fromEntries((await ask({ client: 'a' }, { seen: 'a' })).responseHeaders)
    expect(both).toMatchObject({
      'RateLimit-Limit': '0',
      'RateLimit-Remaining': '0',
      'X-RateLimit-Limit': '4',
      'X-RateLimit-Remaining': '3',
    })
  })

  test('unlimited: all that fits into 32 bits remains', async () => {
    const { ask } = limiterOf(`
domain: shop
descriptors:
  - key: client
    rate_limit: {unlimited: true}
`)
    expect((await ask({ client: 'a' })).statuses[0]).toMatchObject({ limitRemaining: 2 ** 32 - 1 })
  })
})
