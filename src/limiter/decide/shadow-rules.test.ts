// Rules in shadow mode deny no calls, do not change what other rules count, and set no headers:
// with the store, with a deny cache, and while the store is unavailable.
import { describe, expect, test } from '@jest/globals'
import { limiterOf } from '../../../test/kit/ratelimit/decide-limits.ts'

/** A rule whose limit is always exceeded, and a bucket that counts only admitted calls. */
const rulesWith = (mode: string) => `
domain: shop
descriptors:
  - {key: watched, ${mode} rate_limit: {unit: hour, requests_per_unit: 0, on_store_error: deny}}
  - key: bucket
    rate_limit: {algorithm: token_bucket, unit: day, requests_per_unit: 1, burst: 3}
`
const shadow = rulesWith('shadow_mode: true,')
const admitted = ['OK', 'OK', 'OK', 'OVER_LIMIT']

describe.each([
  ['in the store', { hasDenyCache: false, isUnavailable: false }],
  ['with a deny cache', { hasDenyCache: true, isUnavailable: false }],
  ['while the store is unavailable', { hasDenyCache: false, isUnavailable: true }],
])('a rule in shadow mode whose limit is exceeded, %s', (_, { hasDenyCache, isUnavailable }) => {
  test('denies nothing, and the other rules count each call', async () => {
    const { request, store } = limiterOf(shadow, { hasDenyCache })
    store.isUnavailable = isUnavailable
    const codes: string[] = []
    const remaining: (string | undefined)[] = []
    for (let call = 0; call < 4; call++) {
      const { code, responseHeaders } = await request({ watched: 'a' }, { bucket: '' })
      codes.push(code)
      remaining.push(Object.fromEntries(responseHeaders)['X-RateLimit-Remaining'])
    }
    expect(codes).toEqual(admitted)
    expect(remaining).toEqual(['2', '1', '0', '0'])
  })

  test('denies nothing if all rules are in shadow mode, and the others also count', async () => {
    const rules = rulesWith('')
    const { request, store, shadowed } = limiterOf(rules, { hasDenyCache, isShadow: true })
    store.isUnavailable = isUnavailable
    const results: unknown[] = []
    for (let call = 0; call < 2; call++) {
      const { code, statuses, body } = await request({ watched: 'a' }, { bucket: '' })
      results.push([code, statuses[0]?.code, statuses[1]?.limitRemaining, body])
    }
    expect(results).toEqual([
      ['OK', 'OVER_LIMIT', 2, undefined],
      ['OK', 'OVER_LIMIT', 1, undefined],
    ])
    expect(shadowed()).toBe(2)
    await request({ bucket: '' })
    expect(shadowed()).toBe(2) // nothing would have denied this call
  })

  test('is not the rule that is reported to a denied client', async () => {
    const { request, store } = limiterOf(shadow, { hasDenyCache })
    store.isUnavailable = isUnavailable
    for (let call = 0; call < 3; call++) await request({ bucket: '' })
    const denied = await request({ watched: 'a' }, { bucket: '' })
    expect([denied.code, denied.body]).toEqual(['OVER_LIMIT', '{"rule":"shop.bucket"}'])
    expect(denied.statuses.map(({ code }) => code)).toEqual(['OK', 'OVER_LIMIT'])
  })
})

describe.each([false, true])('quotas, with a deny cache: %s', (hasDenyCache) => {
  const quota = 'quota_mode: true,'
  const codesOf = async (rules: string, isQuota: boolean, third: Record<string, string>) => {
    const { request } = limiterOf(rules, { hasDenyCache, isQuota })
    const codes: string[] = []
    for (let call = 0; call < 4; call++) {
      codes.push((await request({ watched: 'a' }, { bucket: '' }, third)).code)
    }
    return codes
  }

  test('an exhausted quota does not stop a bucket from counting while another admits', async () => {
    const rules = `${rulesWith(quota)}
  - {key: open, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 9}}
`
    expect(await codesOf(rules, false, { open: '' })).toEqual(admitted)
  })

  test('if all rules are quotas, one denies only if all others are exhausted, too', async () => {
    expect(await codesOf(rulesWith(''), true, { none: '' })).toEqual(admitted)
  })
})

test('a denied request for several hits reports 0 remaining', async () => {
  const { request } = limiterOf(rulesWith(''))
  const denied = await request({ entries: [{ key: 'bucket', value: '' }], hits: 4 })
  expect(denied.statuses[0]).toMatchObject({ code: 'OVER_LIMIT', limitRemaining: 0 })
  expect(Object.fromEntries(denied.responseHeaders)['X-RateLimit-Remaining']).toBe('0')
})
