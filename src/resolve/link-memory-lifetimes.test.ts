// How long the memory returns links: hot links, which are objects of their own, stale targets and
// misses.
import { describe, expect, test } from '@jest/globals'
import { createLinkMemory, EXTENSION_MS, UNCERTAIN_HIT_MS, ONLY_WRITER_MS } from './link-memory.ts'

const target = { longUrl: 'https://example.com/a', expiresAtMs: null }
/** A memory whose process is the only writer of links. */
const memoryOf = (staleMs = 0) => createLinkMemory({ isOnlyWriter: true, staleMs, random: () => 1 })

describe('a hot link', () => {
  /** A memory whose link was read twice, and the last target that it returned. */
  function setUpHot(staleMs = 0) {
    const memory = memoryOf(staleMs)
    memory.set('code', target, 1000)
    const reads = [memory.get('code', 1000), memory.get('code', 1000)]
    return { memory, reads, hot: reads.at(-1) }
  }

  test('is the same object in all reads from the second', () => {
    const { memory, reads, hot } = setUpHot()
    expect(hot).toMatchObject(target)
    expect(reads[0]).not.toBe(hot)
    for (let i = 0; i < 20; i++) expect(memory.get('code', 1000)).toBe(hot)
  })

  test.each([
    [4095, true],
    [4096, false],
  ])('may be returned twice with %i reads of other links in between: %j', (others, isHot) => {
    const memory = memoryOf()
    memory.set('code', target, 1000)
    memory.get('code', 1000)
    for (let i = 0; i < others; i++) {
      memory.set(`c${i}`, target, 1000)
      memory.get(`c${i}`, 1000)
    }
    const second = memory.get('code', 1000)
    expect(second).toMatchObject(target)
    expect(memory.get('code', 1000) === second).toBe(isHot)
  })

  test('is returned from the start until the end of its lifetime', () => {
    const { memory, hot } = setUpHot()
    const endMs = 1000 + ONLY_WRITER_MS.hit
    expect(memory.get('code', endMs - 1)).toBe(hot)
    expect([memory.get('code', endMs), memory.get('code', 999)]).toEqual([undefined, undefined])
  })

  test('is replaced by a new target, and removed by a miss or an invalidation', () => {
    const other = { longUrl: 'https://example.com/b', expiresAtMs: null }
    const replaced = setUpHot().memory
    replaced.set('code', other, 1000)
    const first = replaced.get('code', 1000)
    expect(first).toMatchObject(other)
    expect(replaced.get('code', 1000)).not.toBe(first)
    const missed = setUpHot().memory
    missed.set('code', undefined, 1000)
    expect(missed.get('code', 1000)).toBeNull()
    const invalidated = setUpHot().memory
    invalidated.delete('code')
    expect(invalidated.get('code', 1000)).toBeUndefined()
  })

  test('is extended as a stale target', () => {
    const { memory } = setUpHot(2 * ONLY_WRITER_MS.hit)
    const nowMs = 1000 + ONLY_WRITER_MS.hit
    expect(memory.staleTarget('code', nowMs)).toMatchObject(target)
    memory.extend('code', nowMs)
    expect(memory.get('code', nowMs + EXTENSION_MS - 1)).toMatchObject(target)
    expect(memory.get('code', nowMs + EXTENSION_MS)).toBeUndefined()
  })
})

describe('an extension', () => {
  test('does not end the lifetime of a link that a newer lookup has returned', () => {
    const memory = memoryOf()
    memory.set('code', target, 0)
    memory.extend('code', 100)
    expect(memory.get('code', ONLY_WRITER_MS.hit - 1)).toMatchObject(target)
  })

  test('of a code that is not in memory stores nothing', () => {
    const memory = memoryOf(60_000)
    memory.extend('code', 0)
    expect([memory.get('code', 0), memory.staleTarget('code', 0)]).toEqual([undefined, undefined])
  })

  test('does not change the age of a stale target', () => {
    const memory = memoryOf(60_000)
    memory.set('code', { ...target, expiresAtMs: 90_000 }, 0)
    memory.extend('code', 59_000)
    expect(memory.staleTarget('code', 59_999)).toMatchObject({ expiresAtMs: 90_000 })
    expect(memory.staleTarget('code', 60_000)).toBeUndefined()
  })
})

test('a stale target is returned until its link expires or is deleted', () => {
  const memory = memoryOf(60_000)
  memory.set('code', { ...target, expiresAtMs: 5000 }, 0)
  expect(memory.staleTarget('code', 4999)).toMatchObject({ longUrl: target.longUrl })
  expect(memory.staleTarget('code', 5000)).toBeUndefined()
  memory.set('code', undefined, 1000)
  expect(memory.staleTarget('code', 1000)).toBeUndefined()
})

test('without a function that reports unknown writes, misses are cached from their lookup', () => {
  const memory = memoryOf()
  memory.set('code', undefined, 1000)
  const endMs = 1000 + ONLY_WRITER_MS.miss
  const timesMs = [999, 1000, endMs - 1, endMs]
  expect(timesMs.map((ms) => memory.get('code', ms))).toEqual([undefined, null, null, undefined])
  memory.delete('code')
  expect(memory.get('code', 1000)).toBeUndefined()
})

test('while other processes write links, misses are not cached', () => {
  const memory = createLinkMemory({ isOnlyWriter: false, staleMs: 0, random: () => 1 })
  memory.set('code', undefined, 1000)
  expect(memory.get('code', 1000)).toBeUndefined()
  memory.set('code', target, 1000)
  expect(memory.get('code', 1000 + UNCERTAIN_HIT_MS - 1)).toMatchObject(target)
  expect(memory.get('code', 1000 + UNCERTAIN_HIT_MS)).toBeUndefined()
})
