// The circuit breaker of statements that need a majority: when it opens, when it closes, and what
// must not open it.
import { expect, test } from '@jest/globals'
import { createMajorityWatch } from './majority.ts'

/** A watch whose pauses end when the test says so. */
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
    nodesAnswer: (isAnswering: boolean) => {
      onProbe = isAnswering
        ? () => {
            majority.answered(performance.now())
          }
        : undefined
    },
    /** Lets the time between two probes pass. */
    pass: async () => {
      wake?.()
      for (let turns = 0; turns < 3; turns++) await turn()
    },
  }
}

test('a failed statement opens it after two silent probes, and a success closes it', async () => {
  const { majority, changes, counts, pass } = watch()
  majority.answered(1)
  majority.failed(2)
  expect([counts.probes, majority.isPresent()]).toEqual([1, true])
  await pass()
  expect(majority.isPresent()).toBe(true)
  await pass()
  expect(majority.isPresent()).toBe(false)
  await pass()
  expect(counts.probes).toBeGreaterThan(3)
  majority.answered(9)
  expect(majority.isPresent()).toBe(true)
  expect(changes).toEqual([true, false, true])
  await majority.stop()
})

test('a probe that succeeds ends the doubt, and it may begin again', async () => {
  const { majority, changes, counts, nodesAnswer, pass } = watch()
  majority.answered(1)
  nodesAnswer(true)
  majority.failed(2)
  majority.failed(performance.now() + 1)
  expect(counts.probes).toBe(1)
  await pass()
  nodesAnswer(false)
  majority.doubt()
  await pass() // of a probe that was sent before the doubt
  await pass()
  expect(changes).toEqual([true])
  await pass()
  expect(changes).toEqual([true, false])
  nodesAnswer(true)
  await pass()
  expect(changes).toEqual([true, false, true])
  await pass()
  expect(counts.probes).toBe(6)
  await majority.stop()
})

test('a statement that failed while others succeeded raises no doubt', async () => {
  const { majority, counts } = watch()
  majority.answered(5)
  majority.failed(4)
  expect(counts.probes).toBe(0)
  await majority.stop()
})

test('a success during the doubt keeps it closed, whoever it is of', async () => {
  const { majority, changes, pass } = watch()
  majority.answered(1)
  majority.failed(2)
  await pass()
  majority.answered(3)
  await pass()
  await pass()
  expect(changes).toEqual([true])
  await majority.stop()
})

test('an answer before the last doubt proves nothing: nodes that go down in turn', async () => {
  const { majority, changes, pass } = watch()
  majority.doubt()
  majority.answered(1)
  majority.doubt()
  await pass() // of a probe that was sent before the last doubt
  majority.failed(2)
  await pass()
  expect(changes).toEqual([true])
  await pass()
  expect(changes).toEqual([true, false])
  await majority.stop()
})

test('a majority that was not heard of for a while is probed, and a busy one is not', async () => {
  const { majority, counts } = watch()
  for (let looks = 0; looks < 20; looks++) {
    majority.answered(looks)
    majority.look()
  }
  expect(counts.probes).toBe(0)
  for (let looks = 0; looks < 4; looks++) majority.look()
  expect(counts.probes).toBe(0)
  majority.look()
  expect(counts.probes).toBe(1)
  await majority.stop()
})

test('what probes found while every node was down does not count once one is up', async () => {
  const { majority, changes, pass } = watch()
  majority.doubt()
  await pass()
  majority.forget() // a node has come up
  await pass()
  await pass()
  expect(changes).toEqual([])
  await pass()
  expect(changes).toEqual([false])
  await majority.stop()
})

test('nothing is known before the first answer, nor after every node went down', async () => {
  const { majority, changes, pass } = watch()
  expect(majority.isPresent()).toBeUndefined()
  majority.doubt()
  await pass()
  await pass()
  expect(majority.isPresent()).toBe(false)
  majority.forget()
  expect(majority.isPresent()).toBeUndefined()
  await majority.stop()
  majority.doubt()
  await pass()
  expect(changes).toEqual([false])
})
