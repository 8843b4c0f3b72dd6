// The memory of links in a process that is the only writer of links.
import { expect, test } from '@jest/globals'
import { createLinkMemory, UNCERTAIN_HIT_MS, ONLY_WRITER_MS } from './link-memory.ts'

const target = { longUrl: 'https://example.com/a', expiresAtMs: null }
const memoryOf = (hasUnknownWrites = false, staleMs = 0) =>
  createLinkMemory({
    isOnlyWriter: true,
    hasUnknownWrites: () => hasUnknownWrites,
    staleMs,
    random: () => 1,
  })

test('a link is kept for minutes, or until it is changed', () => {
  const memory = memoryOf()
  memory.set('code', target, 0)
  expect(memory.get('code', ONLY_WRITER_MS.hit - 1)).toMatchObject(target)
  expect(memory.get('code', ONLY_WRITER_MS.hit)).toBeUndefined()
  memory.delete('code')
  expect(memory.get('code', 0)).toBeUndefined()
})

test('while a write may still take effect, links are kept for seconds, and misses are not', () => {
  const memory = memoryOf(true)
  memory.set('code', target, 0)
  memory.set('missing', undefined, 0)
  expect(memory.get('code', UNCERTAIN_HIT_MS - 1)).toMatchObject(target)
  expect([memory.get('code', UNCERTAIN_HIT_MS), memory.get('missing', 0)]).toEqual([
    undefined,
    undefined,
  ])
})

test('99.9 % of 100,000 links stay in memory', () => {
  const memory = memoryOf()
  const codes = Array.from({ length: 100_000 }, (_, at) => `c${at}`)
  for (const code of codes) memory.set(code, target, 0)
  expect(codes.filter((code) => memory.get(code, 1) !== undefined).length).toBeGreaterThan(99_900)
})

test('without a stale age, no stale target is returned after the clock was set back', () => {
  const memory = memoryOf()
  memory.set('code', target, 1000)
  expect(memory.staleTarget('code', 0)).toBeUndefined()
})

test('a stale target is returned after the clock was set back by less than the stale age', () => {
  const memory = memoryOf(false, 1000)
  memory.set('code', target, 5000)
  const ages = [-1000, -999, 0, 999, 1000]
  const found = ages.filter((ms) => memory.staleTarget('code', 5000 + ms) !== undefined)
  expect(found).toEqual([-999, 0, 999])
})

test('a link that is found after the clock was set back is not a miss later', () => {
  const memory = memoryOf()
  memory.set('code', undefined, ONLY_WRITER_MS.hit)
  memory.set('code', target, 0)
  expect(memory.get('code', ONLY_WRITER_MS.hit)).toBeUndefined()
})
