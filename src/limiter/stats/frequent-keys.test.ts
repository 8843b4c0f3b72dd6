// The keys with the most hits are found in streams with more keys than are tracked.
import { expect, test } from '@jest/globals'
import { createRandom, newSeed } from '../../../test/kit/random.ts'
import { FrequentKeys } from './frequent-keys.ts'

const hit = { hits: 1, denied: 0 }
const createKeys = (keysMax: number, random = Math.random) =>
  new FrequentKeys({ keysMax, random, createItem: (source: string) => `item ${source}` })

test('up to its bound it counts exactly', () => {
  const keys = createKeys(3, Math.random)
  for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) keys.record(key, key, hit)
  expect(keys.top(2)).toEqual([
    { key: 'a', item: 'item a', hits: 3, denied: 0 },
    { key: 'b', item: 'item b', hits: 2, denied: 0 },
  ])
})

test('top returns the keys with the most hits, then those with the most denied hits', () => {
  const keys = createKeys(9, Math.random)
  for (const key of ['a', 'b', 'c']) keys.record(key, '', { hits: 9, denied: 0 })
  keys.record('d', '', { hits: 1, denied: 1 })
  keys.record('a', '', { hits: 1, denied: 1 })
  keys.record('a', '', { hits: 0, denied: 3 })
  expect(keys.top(1).map(({ key }) => key)).toEqual(['a'])
  expect(keys.top(2).map(({ key }) => key)).toEqual(['a', 'b', 'd'])
})

test('a frequent key replaces a rare one with its own item, and the estimate is kept', () => {
  const keys = createKeys(1, () => 0)
  keys.record('a', 'A', { hits: 5, denied: 5 })
  keys.record('b', 'B', hit)
  expect(keys.top(1)).toEqual([{ key: 'b', item: 'item B', hits: 6, denied: 0 }])
  for (let i = 0; i < 2; i++) keys.record('b', 'B', { hits: 1, denied: 1 })
  expect(keys.top(1)).toEqual([{ key: 'b', item: 'item B', hits: 8, denied: 2 }])
})

test('a rare key rarely replaces a frequent one', () => {
  const keys = createKeys(1, () => 0.9)
  keys.record('a', '', { hits: 100, denied: 0 })
  for (let i = 0; i < 1000; i++) keys.record(`b${i}`, '', hit)
  expect(keys.top(9).map(({ key }) => key)).toEqual(['a'])
})

test('of 300,000 hits with a Zipf distribution over 10 million keys, it finds the top 20', () => {
  const seed = newSeed()
  process.stdout.write(`frequent keys, seed ${seed}\n`)
  const random = createRandom(seed)
  const next = () => random.int(2 ** 30) / 2 ** 30
  const keys = createKeys(1000, next)
  const counts = new Map<string, number>()
  for (let i = 0; i < 300_000; i++) {
    // The inverse of the integral of 1/rank: an exponent of 1.
    const key = String(Math.floor(10_000_000 ** next()))
    counts.set(key, (counts.get(key) ?? 0) + 1)
    keys.record(key, '', hit)
  }
  const largest = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 20)
  const found = new Set(keys.top(20).map(({ key }) => key))
  expect(largest.filter(([key]) => found.has(key)).length).toBeGreaterThanOrEqual(19)
})
