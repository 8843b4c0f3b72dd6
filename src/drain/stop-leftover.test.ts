// An Envoy that is already draining when the role `drain` starts is stopped.
import { expect, test } from '@jest/globals'
import { stopLeftoverEnvoy, LEFTOVER_MS_MAX } from './stop-leftover.ts'

type Readiness = 'ready' | 'draining' | 'not-ready' | 'exited' | 'unresponsive'

/**
 * Starts with an Envoy that returns scripted responses in order, the last one forever. A signal
 * arrives after `stopAfterMs`.
 */
async function startWith(responses: readonly Readiness[], stopAfterMs = Infinity) {
  const stopping = new AbortController()
  let [nowMs, polls, quits, warned] = [5000, 0, 0, 0]
  await stopLeftoverEnvoy({
    envoy: {
      readReadiness: () =>
        Promise.resolve(responses[Math.min(polls++, responses.length - 1)] ?? 'unresponsive'),
      quit: () => {
        quits++
        return Promise.resolve()
      },
    },
    nowMs: () => nowMs,
    signal: stopping.signal,
    log: { warn: () => warned++ } as never,
    pause: (ms) => {
      nowMs += ms
      if (nowMs - 5000 >= stopAfterMs) stopping.abort()
      return Promise.resolve()
    },
  })
  return { polls, quits, warned, tookMs: nowMs - 5000 }
}

test.each(['ready', 'not-ready', 'exited'] as const)(
  'an Envoy that is %s keeps running',
  async (state) => {
    expect(await startWith([state])).toEqual({ polls: 1, quits: 0, warned: 0, tookMs: 0 })
  },
)

test('quit is retried until a draining Envoy has exited, with one warning', async () => {
  const result = await startWith(['unresponsive', 'draining', 'unresponsive', 'draining', 'exited'])
  expect(result).toEqual({ polls: 5, quits: 2, warned: 1, tookMs: 400 })
})

test('an Envoy that does not respond is polled for a bounded time and not stopped', async () => {
  expect(await startWith(['unresponsive'])).toMatchObject({ quits: 0, tookMs: LEFTOVER_MS_MAX })
})

test.each(['unresponsive', 'draining'] as const)(
  'a stop of the process ends the wait for an Envoy that is %s',
  async (state) => {
    expect(await startWith([state], 300)).toMatchObject({ polls: 4, tookMs: 300 })
  },
)
