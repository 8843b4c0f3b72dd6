// A burst of changes starts one run, within the bound.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createDebounce } from './debounce.ts'

function createRuns() {
  const scheduler = createFakeScheduler()
  const runsMs: number[] = []
  const run = () => runsMs.push(scheduler.nowMs())
  return {
    scheduler,
    runsMs,
    debounce: createDebounce({ scheduler, quietMs: 100, msMax: 500, run }),
  }
}

test('a burst of changes starts one run, after the last change', async () => {
  const { scheduler, runsMs, debounce } = createRuns()
  debounce.trigger()
  await scheduler.advance(60)
  debounce.trigger()
  await scheduler.advance(1000)
  expect(runsMs).toEqual([160])
})

test('changes without a pause start a run every 500 ms', async () => {
  const { scheduler, runsMs, debounce } = createRuns()
  for (let at = 0; at < 30; at++) {
    debounce.trigger()
    await scheduler.advance(50)
  }
  expect(runsMs).toEqual([500, 1000, 1500])
})

test('a cancelled run does not start', async () => {
  const { scheduler, runsMs, debounce } = createRuns()
  debounce.trigger()
  debounce.cancel()
  await scheduler.advance(1000)
  expect([runsMs, scheduler.waiting()]).toEqual([[], 0])
})
