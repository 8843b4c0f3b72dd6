// How long a starting Envoy waits for the services behind it.
import { expect, test } from '@jest/globals'
import {
  NO_SERVICE_MS_MAX,
  REMAINING_SERVICES_MS_MAX,
  waitForServices,
} from './wait-for-services.ts'

type Response = readonly string[] | 'gone' | 'silent'

const allMissing = ['create', 'redirect']

/** Waits beside an Envoy that returns scripted responses in order, the last one forever. */
async function waitWith(responses: readonly Response[]) {
  let [nowMs, polls] = [5000, 0]
  const warned: object[] = []
  const wait = waitForServices({
    envoy: {
      findUnreachable: () =>
        Promise.resolve(responses[Math.min(polls++, responses.length - 1)] ?? 'silent'),
    },
    nowMs: () => nowMs,
    signal: new AbortController().signal,
    log: { warn: (given: object) => warned.push(given) } as never,
    pause: (ms) => {
      nowMs += ms
      expect(wait.isOver()).toBe(false)
      return Promise.resolve()
    },
  })
  await wait.settled
  return { isOver: wait.isOver(), polls, tookMs: nowMs - 5000, warned }
}

test('the wait is over with the first poll that finds every service', async () => {
  const result = await waitWith(['gone', 'silent', allMissing, ['create'], []])
  expect(result).toEqual({ isOver: true, polls: 5, tookMs: 1000, warned: [] })
})

test('a missing service has a deadline from when another is found, then a warning', async () => {
  const result = await waitWith([allMissing, allMissing, ['create'], allMissing, ['create']])
  expect(result).toMatchObject({
    ...{
      isOver: true,
      tookMs: 500 + REMAINING_SERVICES_MS_MAX,
      warned: [{ unreached: ['create'] }],
    },
  })
})

test.each([[allMissing], ['silent'] as const])('%j has the longest wait', async (response) => {
  const result = await waitWith([response])
  expect(result).toMatchObject({
    isOver: true,
    tookMs: NO_SERVICE_MS_MAX,
    warned: [{ unreached: response }],
  })
})

test('a stop ends the wait', async () => {
  const stopping = new AbortController()
  stopping.abort()
  const wait = waitForServices({
    envoy: { findUnreachable: () => Promise.resolve(allMissing) },
    ...{ nowMs: () => 0, signal: stopping.signal, log: { warn: () => undefined } as never },
  })
  await wait.settled
  expect(wait.isOver()).toBe(false)
})
