// Only an enabled link that still exists has a target, and only until it expires.
import { expect, test } from '@jest/globals'
import { decideRedirect, targetOf } from './decide-redirect.ts'
import type { Link } from './link.ts'

const link: Link = {
  ...{
    code: 'code',
    longUrl: 'https://example.com/',
    createdAtMs: 1,
    creatorId: null,
    writerId: 'w',
  },
  ...{ expiresAtMs: 9, disabledAtMs: null, deletedAtMs: null },
}

test('a link has its target and its expiry', () => {
  expect(targetOf(link)).toEqual({ longUrl: 'https://example.com/', expiresAtMs: 9 })
})

test.each([
  ['unknown', undefined],
  ['without a target', { ...link, longUrl: null }],
  ['disabled', { ...link, disabledAtMs: 0 }],
  ['deleted', { ...link, deletedAtMs: 0 }],
])('a link that is %s has no target', (_, unusable) => {
  expect(targetOf(unusable)).toBeUndefined()
})

test('a target redirects until its expiry', () => {
  const target = { longUrl: 'https://example.com/', expiresAtMs: 9 }
  expect(decideRedirect(target, 8)).toBe(target)
  expect(decideRedirect(target, 9)).toBeUndefined()
  expect(decideRedirect({ ...target, expiresAtMs: null }, 9)).toBeDefined()
  expect(decideRedirect(undefined, 8)).toBeUndefined()
})
