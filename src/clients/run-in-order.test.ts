// Work in order: the number of items in flight and ahead of the first pending one is bounded, and
// errors of the source and of the work stop it.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { waitFor, withinDeadline } from '../../test/kit/wait-for.ts'
import { runInOrder } from './run-in-order.ts'

const AHEAD_MAX = 10_000
const numbers = (length: number) => Array.from({ length }, (_, i) => i)

async function* slowly(items: readonly number[], error?: Error) {
  for (const item of items) {
    if (item % 100 === 99) await sleep(1)
    yield item
  }
  if (error !== undefined) throw error
}

/** The work on `items`, and what it reports. */
function workOn(
  items: Iterable<number> | AsyncIterable<number>,
  run: (item: number) => Promise<void>,
) {
  const stopping = new AbortController()
  const done: [items: number, last: number][] = []
  const onDone = (...given: [number, number]) => void done.push(given)
  const running = runInOrder({ items, parallelMax: 20, run, onDone, signal: stopping.signal })
  running.catch(() => undefined)
  return { running, done, stopping }
}

test('each item of the source is run once, with the maximum in flight', async () => {
  let [inFlight, inFlightMax] = [0, 0]
  const seen: number[] = []
  const { running, done } = workOn(slowly(numbers(1000)), async (item) => {
    inFlightMax = Math.max(inFlightMax, ++inFlight)
    seen.push(item)
    await sleep(item % 7)
    inFlight--
  })
  await withinDeadline('the work', running)
  expect(seen).toEqual(numbers(1000))
  expect(inFlightMax).toBe(20)
  expect(done.at(-1)).toEqual([1000, 999])
  for (const [items, last] of done) expect(last).toBe(items - 1)
})

test('an item in flight bounds how many items are started after it', async () => {
  let complete: () => void = () => undefined
  const pending = new Promise<void>((resolve) => (complete = resolve))
  let started = 0
  const { running, done } = workOn(numbers(3 * AHEAD_MAX), (item) => {
    started++
    return item === 0 ? pending : Promise.resolve()
  })
  await waitFor('the items', () => started === AHEAD_MAX)
  await sleep(50)
  expect([started, done]).toEqual([AHEAD_MAX, []])
  complete()
  await withinDeadline('the work', running)
  expect(done.at(-1)).toEqual([3 * AHEAD_MAX, 3 * AHEAD_MAX - 1])
})

test.each(['an error', 'a signal'])('%s stops work that waits for an item', async (cause) => {
  let fail: (error: Error) => void = () => undefined
  const pending = new Promise<void>((_, reject) => (fail = reject))
  let started = 0
  const { running, stopping } = workOn(numbers(3 * AHEAD_MAX), (item) => {
    started++
    return item === 0 ? pending : Promise.resolve()
  })
  await waitFor('the items', () => started === AHEAD_MAX)
  if (cause === 'a signal') stopping.abort()
  fail(new Error('item 0'))
  await expect(withinDeadline('the stop', running)).rejects.toThrow('item 0')
  expect(started).toBe(AHEAD_MAX)
})

test('an error of the source stops the work once the items in flight are done', async () => {
  const { running, done } = workOn(slowly(numbers(50), new Error('no page')), () => sleep(20))
  await expect(withinDeadline('the stop', running)).rejects.toThrow('no page')
  expect(done.at(-1)).toEqual([50, 49])
})

test('a signal completes the items in flight, and rejects', async () => {
  let started = 0
  const { running, done, stopping } = workOn(slowly(numbers(1000)), () => {
    started++
    return sleep(20)
  })
  await waitFor('the items', () => started >= 100)
  stopping.abort()
  await expect(withinDeadline('the stop', running)).rejects.toThrow('a signal was received')
  expect(started).toBeLessThan(1000)
  expect(done.at(-1)?.[0]).toBe(started)
})
