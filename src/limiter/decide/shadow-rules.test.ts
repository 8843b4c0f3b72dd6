// Rules in shadow mode deny no call, take no hits from other rules, and set no header: over the
// store, from the deny cache, and while the store is unavailable.
import { describe, expect, test } from '@jest/globals'
import { limiterOf } from '../../../test/parts/decide-limits.ts'

/** A rule that is always over its limit, and a bucket that pays only for calls that pass. */
const watchedBeside = (mode: string) => `
domain: shop
descriptors:
  - {key: watched, ${mode} rate_limit: {unit: hour, requests_per_unit: 0, on_store_error: deny}}
  - key: bucket
    rate_limit: {algorithm: token_bucket, unit: day, requests_per_unit: 1, burst: 3}
`
const shadow = watchedBeside('shadow_mode: true,')
const passing = ['OK', 'OK', 'OK', 'OVER_LIMIT']

describe.each([
  ['in the store', { hasDenyCache: false, isAway: false }],
  ['with a deny cache', { hasDenyCache: true, isAway: false }],
  ['while the store is unavailable', { hasDenyCache: false, isAway: true }],
])('a rule in shadow mode that is over its limit, %s', (_, { hasDenyCache, isAway }) => {
  test('denies nothing, and the other rules count each call', async () => {
    const { ask, store } = limiterOf(shadow, { hasDenyCache })
    store.isAway = isAway
    const codes: string[] = []
    const remaining: (string | undefined)[] = []
    for (let call = 0; call < 4; call++) {
      const { code, responseHeaders } = await ask({ watched: 'a' }, { bucket: '' })
      codes.push(code)
      remaining.push(Object.fromEntries(responseHeaders)['X-RateLimit-Remaining'])
    }
    expect(codes).toEqual(passing)
    expect(remaining).toEqual(['2', '1', '0', '0'])
  })

  test('denies nothing where all rules are in shadow mode, and the others count too', async () => {
    const text = watchedBeside('')
    const { ask, store, shadowed } = limiterOf(text, { hasDenyCache, isShadow: true })
    store.isAway = isAway
    const seen: unknown[] = []
    for (let call = 0; call < 2; call++) {
      const { code, statuses, body } = await ask({ watched: 'a' }, { bucket: '' })
      seen.push([code, statuses[0]?.code, statuses[1]?.limitRemaining, body])
    }
    expect(seen).toEqual([
      ['OK', 'OVER_LIMIT', 2, undefined],
      ['OK', 'OVER_LIMIT', 1, undefined],
    ])
    expect(shadowed()).toBe(2)
    await ask({ bucket: '' })
    expect(shadowed()).toBe(2) // nothing would have denied this call
  })

  test('is not the rule of which a denied client learns', async () => {
    const { ask, store } = limiterOf(shadow, { hasDenyCache })
    store.isAway = isAway
    for (let call = 0; call < 3; call++) await ask({ bucket: '' })
    const denied = await ask({ watched: 'a' }, { bucket: '' })
    expect([denied.code, denied.body]).toEqual(['OVER_LIMIT', '{"rule":"shop.bucket"}'])
    expect(denied.statuses.map(({ code }) => code)).toEqual(['OK', 'OVER_LIMIT'])
  })
})

describe.each([false, true])('quotas, with a deny cache: %s', (hasDenyCache) => {
  const quota = 'quota_mode: true,'
  const codesOf = async (text: string, isQuota: boolean, third: Record<string, string>) => {
    const { ask } = limiterOf(text, { hasDenyCache, isQuota })
    const codes: string[] = []
    for (let call = 0; call < 4; call++) {
      codes.push((await ask({ watched: 'a' }, { bucket: '' }, third)).code)
    }
    return codes
  }

  test('a spent one does not keep a bucket from counting while another has hits left', async () => {
    const text = `${watchedBeside(quota)}
  - {key: open, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 9}}
`
    expect(await codesOf(text, false, { open: '' })).toEqual(passing)
  })

  test('where all rules are quotas a spent one denies only together with all others', async () => {
    expect(await codesOf(watchedBeside(''), true, { none: '' })).toEqual(passing)
  })
})

test('a client that asks for more than remains is told that nothing does', async () => {
  const { ask } = limiterOf(watchedBeside(''))
  const denied = await ask({ entries: [{ key: 'bucket', value: '' }], hits: 4 })
  expect(denied.statuses[0]).toMatchObject({ code: 'OVER_LIMIT', limitRemaining: 0 })
  expect(Object.fromEntries(denied.responseHeaders)['X-RateLimit-Remaining']).toBe('0')
})
