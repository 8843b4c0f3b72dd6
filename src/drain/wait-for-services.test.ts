// How long a starting Envoy waits for the services behind it.
import { expect, test } from '@jest/globals'
import {
  NO_SERVICE_MS_MAX,
  REMAINING_SERVICES_MS_MAX,
  waitForServices,
} from './wait-for-services.ts'

type Response = readonly string[] | 'exited' | 'unresponsive'

const allMissing = ['create', 'redirect']

/** Waits for an Envoy that returns scripted responses in order, the last one forever. */
async function waitWith(responses: readonly Response[]) {
  let [nowMs, polls] = [5000, 0]
  const warned: object[] = []
  const wait = waitForServices({
    envoy: {
      findUnreachable: () =>
        Promise.resolve(responses[Math.min(polls++, responses.length - 1)] ?? 'unresponsive'),
    },
    nowMs: () => nowMs,
    signal: new AbortController().signal,
    log: { warn: (given: object) => warned.push(given) } as never,
    pause: (ms) => {
      nowMs += ms
      expect(wait.isComplete()).toBe(false)
      return Promise.resolve()
    },
  })
  await wait.settled
  return { isComplete: wait.isComplete(), polls, tookMs: nowMs - 5000, warned }
}

test('the wait completes with the first poll that finds every service', async () => {
  const result = await waitWith(['exited', 'unresponsive', allMissing, ['create'], []])
  expect(result).toEqual({ isComplete: true, polls: 5, tookMs: 1000, warned: [] })
})

test('once one service is found, a warning is logged if the others miss a deadline', async () => {
  const result = await waitWith([allMissing, allMissing, ['create'], allMissing, ['create']])
  expect(result).toMatchObject({
    ...{
      isComplete: true,
      tookMs: 500 + REMAINING_SERVICES_MS_MAX,
      warned: [{ unreachable: ['create'] }],
    },
  })
})

test.each([[allMissing], ['unresponsive'] as const])(
  'the wait is longest while Envoy reports %j',
  async (response) => {
    const result = await waitWith([response])
    expect(result).toMatchObject({
      isComplete: true,
      tookMs: NO_SERVICE_MS_MAX,
      warned: [{ unreachable: response }],
    })
  },
)

test('an abort settles the wait', async () => {
  const stopping = new AbortController()
  stopping.abort()
  const wait = waitForServices({
    envoy: { findUnreachable: () => Promise.resolve(allMissing) },
    ...{ nowMs: () => 0, signal: stopping.signal, log: { warn: () => undefined } as never },
  })
  await wait.settled
  expect(wait.isComplete()).toBe(false)
})
