// The circuit breaker of statements that need a majority: when it opens, closes and stays closed.
import { expect, test } from '@jest/globals'
import { createMajorityWatch } from './majority.ts'

/** A watch whose pauses the test completes. */
function watch() {
  const changes: boolean[] = []
  const counts = { probes: 0 }
  let onProbe: (() => void) | undefined
  let wake: (() => void) | undefined
  const majority = createMajorityWatch({
    probe() {
      counts.probes++
      onProbe?.()
    },
    onChange: (isPresent) => changes.push(isPresent),
    pause: (_, signal) =>
      new Promise((resolve) => {
        wake = resolve
        signal?.addEventListener('abort', () => {
          resolve()
        })
      }),
  })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  return {
    majority,
    changes,
    counts,
    /** From now on every probe succeeds, or none does. */
    setResponding: (isResponding: boolean) => {
      onProbe = isResponding
        ? () => {
            majority.noteSuccess(performance.now())
          }
        : undefined
    },
    /** Completes the pause between two probes. */
    nextRound: async () => {
      wake?.()
      for (let turns = 0; turns < 3; turns++) await turn()
    },
  }
}

test('the breaker opens after two failed rounds of probes; a success closes it', async () => {
  const { majority, changes, counts, nextRound } = watch()
  majority.noteSuccess(1)
  majority.noteFailure(2)
  expect([counts.probes, majority.isPresent()]).toEqual([1, true])
  await nextRound()
  expect(majority.isPresent()).toBe(true)
  await nextRound()
  expect(majority.isPresent()).toBe(false)
  await nextRound()
  expect(counts.probes).toBeGreaterThan(3)
  majority.noteSuccess(9)
  expect(majority.isPresent()).toBe(true)
  expect(changes).toEqual([true, false, true])
  await majority.stop()
})

test('a successful probe stops the probing, which can restart', async () => {
  const { majority, changes, counts, setResponding, nextRound } = watch()
  majority.noteSuccess(1)
  setResponding(true)
  majority.noteFailure(2)
  majority.noteFailure(performance.now() + 1)
  expect(counts.probes).toBe(1)
  await nextRound()
  setResponding(false)
  majority.suspect()
  await nextRound() // of a probe sent before the suspicion
  await nextRound()
  expect(changes).toEqual([true])
  await nextRound()
  expect(changes).toEqual([true, false])
  setResponding(true)
  await nextRound()
  expect(changes).toEqual([true, false, true])
  await nextRound()
  expect(counts.probes).toBe(6)
  await majority.stop()
})

test('a failed statement does not make the majority suspect while others succeed', async () => {
  const { majority, counts } = watch()
  majority.noteSuccess(5)
  majority.noteFailure(4)
  expect(counts.probes).toBe(0)
  await majority.stop()
})

test('any success during the probing keeps the breaker closed', async () => {
  const { majority, changes, nextRound } = watch()
  majority.noteSuccess(1)
  majority.noteFailure(2)
  await nextRound()
  majority.noteSuccess(3)
  await nextRound()
  await nextRound()
  expect(changes).toEqual([true])
  await majority.stop()
})

test('a success before the last suspicion does not count: nodes go down in turn', async () => {
  const { majority, changes, nextRound } = watch()
  majority.suspect()
  majority.noteSuccess(1)
  majority.suspect()
  await nextRound() // of a probe sent before the last suspicion
  majority.noteFailure(2)
  await nextRound()
  expect(changes).toEqual([true])
  await nextRound()
  expect(changes).toEqual([true, false])
  await majority.stop()
})

test('an idle majority is probed, a busy one is not', async () => {
  const { majority, counts } = watch()
  for (let ticks = 0; ticks < 20; ticks++) {
    majority.noteSuccess(ticks)
    majority.tick()
  }
  expect(counts.probes).toBe(0)
  for (let ticks = 0; ticks < 4; ticks++) majority.tick()
  expect(counts.probes).toBe(0)
  majority.tick()
  expect(counts.probes).toBe(1)
  await majority.stop()
})

test('probe results from before a reset do not count', async () => {
  const { majority, changes, nextRound } = watch()
  majority.suspect()
  await nextRound()
  majority.reset() // a node has come up
  await nextRound()
  await nextRound()
  expect(changes).toEqual([])
  await nextRound()
  expect(changes).toEqual([false])
  await majority.stop()
})

test('the state is unknown before the first success and after a reset', async () => {
  const { majority, changes, nextRound } = watch()
  expect(majority.isPresent()).toBeUndefined()
  majority.suspect()
  await nextRound()
  await nextRound()
  expect(majority.isPresent()).toBe(false)
  majority.reset()
  expect(majority.isPresent()).toBeUndefined()
  await majority.stop()
  majority.suspect()
  await nextRound()
  expect(changes).toEqual([false])
})
