// When an Envoy that starts counts as having found what is behind it.
import { expect, test } from '@jest/globals'
import { NOTHING_MS_MAX, OTHERS_MS_MAX, watchReach } from './watch-reach.ts'

type Said = readonly string[] | 'gone' | 'silent'

const nothing = ['create', 'redirect']

/** Watches an Envoy that says one thing after the other, the last one for ever. */
async function watch(says: readonly Said[]) {
  let [nowMs, looks] = [5000, 0]
  const warned: object[] = []
  const reach = watchReach({
    envoy: {
      findUnreached: () => Promise.resolve(says[Math.min(looks++, says.length - 1)] ?? 'silent'),
    },
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
  const end = await watch(['gone', 'silent', nothing, ['create'], []])
  expect(end).toEqual({ isOver: true, looks: 5, tookMs: 1000, warned: [] })
})

test('a service that stays away is waited for from when another is there, and told', async () => {
  const end = await watch([nothing, nothing, ['create'], nothing, ['create']])
  expect(end).toMatchObject({
    ...{ isOver: true, tookMs: 500 + OTHERS_MS_MAX, warned: [{ unreached: ['create'] }] },
  })
})

test.each([[nothing], ['silent'] as const])('%j is waited for longest', async (said) => {
  const end = await watch([said])
  expect(end).toMatchObject({ isOver: true, tookMs: NOTHING_MS_MAX, warned: [{ unreached: said }] })
})

test('an end while it waits is an end', async () => {
  const ending = new AbortController()
  ending.abort()
  const reach = watchReach({
    envoy: { findUnreached: () => Promise.resolve(nothing) },
    ...{ nowMs: () => 0, signal: ending.signal, log: { warn: () => undefined } as never },
  })
  await reach.settled
  expect(reach.isOver()).toBe(false)
})
