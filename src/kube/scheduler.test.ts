// Pauses and deadlines: each completes at its time or with its signal and leaks no timer.
import { getEventListeners } from 'node:events'
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../test/kit/fake-scheduler.ts'
import {
  createDeadline,
  completesWithin,
  pauseFor,
  systemScheduler,
  untilAborted,
} from './scheduler.ts'

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

/** Whether a promise has settled. */
async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  let is = false
  void promise.then(() => (is = true))
  await new Promise((resolve) => setImmediate(resolve))
  return is
}

test('a pause completes at its time', async () => {
  const scheduler = createFakeScheduler()
  const { signal } = new AbortController()
  const pause = pauseFor(scheduler, 1000, signal)
  await scheduler.advance(999)
  expect(await hasSettled(pause)).toBe(false)
  await scheduler.advance(1)
  expect(await hasSettled(pause)).toBe(true)
  expect(listeners(signal)).toBe(0)
})

test('a pause completes with its signal, even if it has already aborted', async () => {
  const scheduler = createFakeScheduler()
  const stopping = new AbortController()
  const pause = pauseFor(scheduler, 1000, stopping.signal)
  stopping.abort()
  expect(await hasSettled(pause)).toBe(true)
  expect(await hasSettled(pauseFor(scheduler, 1000, stopping.signal))).toBe(true)
  expect([scheduler.waiting(), listeners(stopping.signal)]).toEqual([0, 0])
})

test('work that completes before its deadline leaks no timer', async () => {
  const scheduler = createFakeScheduler()
  expect(await completesWithin(scheduler, 1000, Promise.resolve())).toBe(true)
  await expect(completesWithin(scheduler, 1000, Promise.reject(new Error('x')))).rejects.toThrow(
    'x',
  )
  expect(scheduler.waiting()).toBe(0)
})

test('a deadline aborts at its time and reports the timeout', async () => {
  const scheduler = createFakeScheduler()
  const parent = new AbortController()
  const deadline = createDeadline(scheduler, 1000, parent.signal)
  await scheduler.advance(999)
  expect([deadline.signal.aborted, deadline.timedOut()]).toEqual([false, false])
  await scheduler.advance(1)
  expect([deadline.signal.aborted, deadline.timedOut()]).toEqual([true, true])
  expect(parent.signal.aborted).toBe(false)
})

test('a deadline aborts with its parent and reports no timeout', () => {
  const scheduler = createFakeScheduler()
  const parent = new AbortController()
  const before = createDeadline(scheduler, 1000, parent.signal)
  parent.abort()
  const after = createDeadline(scheduler, 1000, parent.signal)
  for (const deadline of [before, after])
    expect([deadline.signal.aborted, deadline.timedOut()]).toEqual([true, false])
})

test('a cleared deadline leaks no timer or listener', async () => {
  const scheduler = createFakeScheduler()
  const parent = new AbortController()
  const deadline = createDeadline(scheduler, 1000, parent.signal)
  expect([scheduler.waiting(), listeners(parent.signal)]).toEqual([1, 1])
  deadline.clear()
  expect([scheduler.waiting(), listeners(parent.signal)]).toEqual([0, 0])
  await scheduler.advance(2000)
  expect([deadline.signal.aborted, deadline.timedOut()]).toEqual([false, false])
})

test('waiting for a signal completes when it aborts, or immediately if it is aborted', async () => {
  const stopping = new AbortController()
  const waiting = untilAborted(stopping.signal)
  expect(await hasSettled(waiting)).toBe(false)
  stopping.abort()
  expect(await hasSettled(waiting)).toBe(true)
  expect(await hasSettled(untilAborted(stopping.signal))).toBe(true)
})

test('a delay beyond the limit of a timer does not fire immediately', async () => {
  let hasFired = false
  const cancel = systemScheduler.after(2 ** 40, () => (hasFired = true))
  // A Node.js timer whose delay is too long fires after 1 ms; this one is due later.
  await new Promise<void>((resolve) => {
    systemScheduler.after(5, resolve)
  })
  cancel()
  expect(hasFired).toBe(false)
})
