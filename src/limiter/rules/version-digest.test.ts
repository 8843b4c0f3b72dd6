// The digest of a version depends on its types and resources, but not on their order.
import { expect, test } from '@jest/globals'
import { versionDigest } from './version-digest.ts'

const KIB = 1024

const digestOf = (resources: readonly (readonly [string, string | Buffer])[], typeUrl = 't') =>
  versionDigest({
    ...{ version: 'v', nonce: 'n', controlPlane: '', message: Buffer.alloc(0), typeUrl },
    resources: resources.map(([type, bytes]) => ({ typeUrl: type, bytes: Buffer.from(bytes) })),
  })

test('equal resources have one digest, in any order', async () => {
  const digest = await digestOf([
    ['t', 'a'],
    ['t', 'b'],
  ])
  expect(digest).toMatch(/^[0-9a-f]{64}$/)
  const reversed = await digestOf([
    ['t', 'b'],
    ['t', 'a'],
  ])
  expect(reversed).toBe(digest)
})

test('other resources, types and numbers of resources have other digests', async () => {
  const large = Buffer.alloc(600 * KIB, 'x')
  const changed = Buffer.from(large)
  changed[300 * KIB] = 0 // in the second slice
  const digests = await Promise.all([
    digestOf([]),
    digestOf([], 'u'),
    digestOf([['t', 'a']]),
    digestOf([['t', 'a']], 'u'),
    digestOf([['u', 'a']]),
    digestOf([['ta', '']]),
    digestOf([
      ['t', 'a'],
      ['t', 'a'],
    ]),
    digestOf([['t', large]]),
    digestOf([['t', changed]]),
    digestOf([['t', large.subarray(1)]]),
  ])
  expect(new Set(digests).size).toBe(digests.length)
})

test.each([
  ['a large resource', [['t', Buffer.alloc(600 * KIB)]] as const, 2],
  ['many small resources', Array.from({ length: 300 }, () => ['t', 'a'] as const), 2],
  ['a small version', [['t', 'a']] as const, 0],
])('the event loop runs between the slices of %s', async (_, resources, turnsMin) => {
  let turns = 0
  let isDone = false
  const count = () => {
    turns++
    if (!isDone) setImmediate(count)
  }
  const counting = setImmediate(count)
  await digestOf(resources)
  isDone = true
  clearImmediate(counting)
  if (turnsMin === 0) expect(turns).toBe(0)
  else expect(turns).toBeGreaterThanOrEqual(turnsMin)
})
