// Pauses and deadlines: each ends at its time or with its signal, and leaves no timer and no
// listener behind.
import { getEventListeners } from 'node:events'
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../test/parts/fake-scheduler.ts'
import { deadlineOn, endsWithin, pauseOn, systemScheduler, untilAborted } from './scheduler.ts'

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

/** Whether a promise has settled by now. */
async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  let is = false
  void promise.then(() => (is = true))
  await new Promise((resolve) => setImmediate(resolve))
  return is
}

test('a pause ends at its time', async () => {
  const scheduler = createFakeScheduler()
  const { signal } = new AbortController()
  const pause = pauseOn(scheduler, 1000, signal)
  await scheduler.advance(999)
  expect(await hasSettled(pause)).toBe(false)
  await scheduler.advance(1)
  expect(await hasSettled(pause)).toBe(true)
  expect(listeners(signal)).toBe(0)
})

test('a pause ends with its signal, also one that has aborted before', async () => {
  const scheduler = createFakeScheduler()
  const ending = new AbortController()
  const pause = pauseOn(scheduler, 1000, ending.signal)
  ending.abort()
  expect(await hasSettled(pause)).toBe(true)
  expect(await hasSettled(pauseOn(scheduler, 1000, ending.signal))).toBe(true)
  expect([scheduler.waiting(), listeners(ending.signal)]).toEqual([0, 0])
})

test('work that ends before its time leaves no timer', async () => {
  const scheduler = createFakeScheduler()
  expect(await endsWithin(scheduler, 1000, Promise.resolve())).toBe(true)
  await expect(endsWithin(scheduler, 1000, Promise.reject(new Error('x')))).rejects.toThrow('x')
  expect(scheduler.waiting()).toBe(0)
})

test('a deadline aborts at its time, and reports that it was the time', async () => {
  const scheduler = createFakeScheduler()
  const parent = new AbortController()
  const deadline = deadlineOn(scheduler, 1000, parent.signal)
  await scheduler.advance(999)
  expect([deadline.signal.aborted, deadline.isLate()]).toEqual([false, false])
  await scheduler.advance(1)
  expect([deadline.signal.aborted, deadline.isLate()]).toEqual([true, true])
  expect(parent.signal.aborted).toBe(false)
})

test('a deadline follows its parent, and does not take that for its time', () => {
  const scheduler = createFakeScheduler()
  const parent = new AbortController()
  const before = deadlineOn(scheduler, 1000, parent.signal)
  parent.abort()
  const after = deadlineOn(scheduler, 1000, parent.signal)
  for (const deadline of [before, after])
    expect([deadline.signal.aborted, deadline.isLate()]).toEqual([true, false])
})

test('a deadline that has served leaves no timer and no listener', async () => {
  const scheduler = createFakeScheduler()
  const parent = new AbortController()
  const deadline = deadlineOn(scheduler, 1000, parent.signal)
  expect([scheduler.waiting(), listeners(parent.signal)]).toEqual([1, 1])
  deadline.end()
  expect([scheduler.waiting(), listeners(parent.signal)]).toEqual([0, 0])
  await scheduler.advance(2000)
  expect([deadline.signal.aborted, deadline.isLate()]).toEqual([false, false])
})

test('waiting for a signal ends when it aborts, or at once if it has', async () => {
  const ending = new AbortController()
  const waiting = untilAborted(ending.signal)
  expect(await hasSettled(waiting)).toBe(false)
  ending.abort()
  expect(await hasSettled(waiting)).toBe(true)
  expect(await hasSettled(untilAborted(ending.signal))).toBe(true)
})

test('a time beyond what a timer can wait does not fire at once', async () => {
  let hasFired = false
  const cancel = systemScheduler.after(2 ** 40, () => (hasFired = true))
  // A timer of Node.js that is given too long a time fires after 1 ms: this one is due later.
  await new Promise<void>((resolve) => {
    systemScheduler.after(5, resolve)
  })
  cancel()
  expect(hasFired).toBe(false)
})
