// The expiry and the state of links, and which links redirect.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { decideRedirect, targetOf } from './decide-redirect.ts'
import { expiryOf, isExpired, TTL_DAYS_MAX } from './expiry.ts'
import { stateOf } from './link.ts'

const NOW_MS = 1_790_000_000_000
const DAY_MS = 86_400_000

test('expiryOf() counts days of 86,400 seconds', () => {
  expect(expiryOf(NOW_MS, undefined)).toBeNull()
  expect(expiryOf(NOW_MS, 1)).toBe(NOW_MS + DAY_MS)
  expect(expiryOf(NOW_MS, TTL_DAYS_MAX)).toBe(NOW_MS + 3650 * DAY_MS)
})

test('isExpired() is false until the instant itself', () => {
  expect(isExpired(NOW_MS, NOW_MS - 1)).toBe(false)
  expect(isExpired(NOW_MS, NOW_MS)).toBe(true)
  expect(isExpired(NOW_MS, NOW_MS + 1)).toBe(true)
  expect(isExpired(null, Number.MAX_SAFE_INTEGER)).toBe(false)
})

const states = [
  ['active', {}],
  ['active', { expiresAtMs: NOW_MS + 1 }],
  ['expired', { expiresAtMs: NOW_MS }],
  ['disabled', { disabledAtMs: 1 }],
  ['disabled', { disabledAtMs: 0 }],
  ['disabled', { disabledAtMs: 1, expiresAtMs: NOW_MS + 1 }],
  ['expired', { disabledAtMs: 1, expiresAtMs: NOW_MS }],
  ['deleted', { longUrl: null, deletedAtMs: 1 }],
  ['deleted', { longUrl: null, deletedAtMs: 0 }],
  ['deleted', { longUrl: null, deletedAtMs: 1, disabledAtMs: 1, expiresAtMs: NOW_MS - 1 }],
] as const

test.each(states)('%s: %j', (state, change) => {
  const link = sampleLink(change)
  expect(stateOf(link, NOW_MS)).toBe(state)
  const target = decideRedirect(targetOf(link), NOW_MS)
  const expected = { longUrl: link.longUrl, expiresAtMs: link.expiresAtMs }
  expect(target).toEqual(state === 'active' ? expected : undefined)
})

test('an unknown code redirects nowhere', () => {
  expect(decideRedirect(targetOf(undefined), NOW_MS)).toBeUndefined()
})

test('a link redirects exactly while it is active', () => {
  const time = fc.option(fc.integer({ min: NOW_MS - 2, max: NOW_MS + 2 }))
  fc.assert(
    fc.property(time, time, time, (expiresAtMs, disabledAtMs, deletedAtMs) => {
      const longUrl = deletedAtMs === null ? 'http://a/' : null
      const link = sampleLink({ expiresAtMs, disabledAtMs, deletedAtMs, longUrl })
      const redirects = decideRedirect(targetOf(link), NOW_MS) !== undefined
      expect(redirects).toBe(stateOf(link, NOW_MS) === 'active')
    }),
  )
})
