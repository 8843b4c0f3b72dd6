// What becomes of an Envoy that a companion finds draining when it starts.
import { expect, test } from '@jest/globals'
import { endLeftover, LEFTOVER_MS_MAX } from './stop-leftover.ts'

type Said = 'ready' | 'draining' | 'not-ready' | 'gone' | 'silent'

/** Starts beside an Envoy that says one thing after the other, the last one for ever. */
async function startBeside(says: readonly Said[]) {
  let [nowMs, looks, ends, warned] = [5000, 0, 0, 0]
  await endLeftover({
    envoy: {
      askReady: () => Promise.resolve(says[Math.min(looks++, says.length - 1)] ?? 'silent'),
      end: () => {
        ends++
        return Promise.resolve()
      },
    },
    nowMs: () => nowMs,
    log: { warn: () => warned++ } as never,
    pause: (ms) => {
      nowMs += ms
      return Promise.resolve()
    },
  })
  return { looks, ends, warned, tookMs: nowMs - 5000 }
}

test.each(['ready', 'not-ready', 'gone'] as const)('one that is %s is let alone', async (said) => {
  expect(await startBeside([said])).toEqual({ looks: 1, ends: 0, warned: 0, tookMs: 0 })
})

test('one that drains is ended until it is gone, which is told once', async () => {
  const end = await startBeside(['silent', 'draining', 'silent', 'draining', 'gone'])
  expect(end).toEqual({ looks: 5, ends: 2, warned: 1, tookMs: 400 })
})

test('one that says nothing is asked for so long and no longer, and not ended', async () => {
  expect(await startBeside(['silent'])).toMatchObject({ ends: 0, tookMs: LEFTOVER_MS_MAX })
})
