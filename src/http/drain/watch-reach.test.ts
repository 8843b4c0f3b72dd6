// When an Envoy that starts counts as having found what is behind it.
import { expect, test } from '@jest/globals'
import { REACH_MS_MAX, watchReach } from './watch-reach.ts'

type Said = number | 'gone' | 'silent'

/** Watches an Envoy that says one thing after the other, the last one for ever. */
async function watch(says: readonly Said[]) {
  let [nowMs, looks] = [5000, 0]
  const warned: object[] = []
  const reach = watchReach({
    envoy: { countUnreached: () => Promise.resolve(says[Math.min(looks++, says.length - 1)] ?? 0) },
    nowMs: () => nowMs,
    signal: new AbortController().signal,
    log: { warn: (given: object) => warned.push(given) } as never,
    pause: (ms) => {
      nowMs += ms
      expect(reach.isOver()).toBe(false)
      return Promise.resolve()
    },
  })
  await reach.settled
  return { isOver: reach.isOver(), looks, tookMs: nowMs - 5000, warned }
}

test('it is over with the first look that misses nothing', async () => {
  const end = await watch(['gone', 'silent', 2, 1, 0])
  expect(end).toEqual({ isOver: true, looks: 5, tookMs: 1000, warned: [] })
})

test('what stays away is waited for so long and no longer, and told', async () => {
  const end = await watch([1])
  expect(end).toMatchObject({ isOver: true, tookMs: REACH_MS_MAX, warned: [{ unreached: 1 }] })
})
