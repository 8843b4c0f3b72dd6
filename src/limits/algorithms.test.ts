// Properties of every algorithm over random histories.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { CounterState, Limit } from './algorithm.ts'
import { algorithms } from './algorithms.ts'

const limits = fc.record({
  requests: fc.integer({ min: 1, max: 50 }),
  windowUs: fc.constantFrom(1_000_000, 60_000_000, 3_600_000_000, 30_000_000, 7_000_003),
  extra: fc.integer({ min: 0, max: 50 }),
})
const steps = fc.array(
  fc.record({
    // The clock may also be set back.
    waitUs: fc.oneof(
      fc.integer({ min: 0, max: 2_000_000 }),
      fc.integer({ min: 0, max: 2 ** 33 }),
      fc.integer({ min: -20_000_000, max: 0 }),
      fc.integer({ min: -(2 ** 33), max: 0 }),
    ),
    hits: fc.integer({ min: 0, max: 4 }),
  }),
  { maxLength: 60 },
)
const START_US = 1_790_000_000_000_000

describe.each(algorithms.map((algorithm) => [algorithm.name, algorithm] as const))(
  '%s',
  (_, algorithm) => {
    const limitOf = ({
      requests,
      windowUs,
      extra,
    }: {
      requests: number
      windowUs: number
      extra: number
    }): Limit => ({
      requests,
      windowUs,
      burst: algorithm.takesBurst ? requests + extra : requests,
      denyConsumes: false,
    })

    /** Replays a history and calls `check` with each input and its decision. */
    const replayHistory = (
      limit: Limit,
      history: readonly { waitUs: number; hits: number }[],
      check: (step: {
        state: CounterState | undefined
        hits: number
        nowUs: number
        decision: ReturnType<typeof algorithm.decide>
      }) => void,
    ) => {
      let state: CounterState | undefined
      let nowUs = START_US
      for (const { waitUs, hits } of history) {
        nowUs += waitUs
        const decision = algorithm.decide({ state, hits, nowUs, limit })
        check({ state, hits, nowUs, decision })
        state = decision.next ?? state
      }
    }

    test('after a clock is set back, no wait is longer than two windows', () => {
      fc.assert(
        fc.property(limits, steps, (shape, history) => {
          const limit = limitOf(shape)
          const maxUs = 2 * limit.windowUs + (limit.burst / limit.requests) * limit.windowUs + 1
          replayHistory(limit, history, ({ decision: { retryAfterUs, resetUs, expiresInUs } }) => {
            if (Number.isFinite(retryAfterUs)) expect(retryAfterUs).toBeLessThanOrEqual(maxUs)
            expect(resetUs).toBeLessThanOrEqual(maxUs)
            expect(expiresInUs).toBeLessThanOrEqual(maxUs)
          })
        }),
      )
    })

    test('a clock that is set forward and back admits no additional hits', () => {
      fc.assert(
        fc.property(limits, fc.integer({ min: 0, max: 2 ** 33 }), (shape, stepUs) => {
          const limit = limitOf(shape)
          const fill = (from: CounterState | undefined, nowUs: number) => {
            let [state, admitted] = [from, 0]
            for (let hit = 0; hit <= limit.burst; hit++) {
              const decision = algorithm.decide({ state, hits: 1, nowUs, limit })
              if (decision.admitted) admitted++
              state = decision.next ?? state
            }
            return { state, admitted }
          }
          const ahead = fill(undefined, START_US + stepUs)
          expect(fill(ahead.state, START_US).admitted).toBe(0)
        }),
      )
    })

    test('a peek returns whether one hit would be admitted', () => {
      fc.assert(
        fc.property(limits, steps, (shape, history) => {
          const limit = limitOf(shape)
          replayHistory(limit, history, ({ state, nowUs }) => {
            const peek = algorithm.decide({ state, hits: 0, nowUs, limit })
            const hit = algorithm.decide({ state, hits: 1, nowUs, limit })
            expect(peek.admitted).toBe(hit.admitted)
          })
        }),
      )
    })

    test('a retry is admitted after the reported wait, and denied a microsecond earlier', () => {
      fc.assert(
        fc.property(limits, steps, (shape, history) => {
          const limit = limitOf(shape)
          replayHistory(
            limit,
            history,
            ({ state, hits, nowUs, decision: { admitted, retryAfterUs, next } }) => {
              if (admitted || !Number.isFinite(retryAfterUs)) return
              const stored = next ?? state
              const retry = (laterUs: number) =>
                algorithm.decide({ state: stored, hits, nowUs: nowUs + laterUs, limit }).admitted
              expect(retry(retryAfterUs)).toBe(true)
              expect(retryAfterUs).toBeGreaterThan(0)
              if (retryAfterUs > 1) expect(retry(retryAfterUs - 1)).toBe(false)
            },
          )
        }),
      )
    })

    test('the remaining hits are admitted in one call, and one more is denied', () => {
      fc.assert(
        fc.property(limits, steps, (shape, history) => {
          const limit = limitOf(shape)
          replayHistory(limit, history, ({ state, nowUs, decision }) => {
            const stored = decision.next ?? state
            if (decision.remaining > 0) {
              const all = algorithm.decide({
                state: stored,
                hits: decision.remaining,
                nowUs,
                limit,
              })
              expect(all.admitted).toBe(true)
            }
            const more = algorithm.decide({
              state: stored,
              hits: decision.remaining + 1,
              nowUs,
              limit,
            })
            // An empty leaky bucket admits one call of several hits.
            const admitsMore = algorithm.name === 'leaky_bucket' && decision.remaining > 0
            if (!admitsMore) expect(more.admitted).toBe(false)
          })
        }),
      )
    })

    test('after the reset the counter behaves like a new one', () => {
      fc.assert(
        fc.property(limits, steps, (shape, history) => {
          const limit = limitOf(shape)
          replayHistory(limit, history, ({ state, nowUs, decision }) => {
            const stored = decision.next ?? state
            const later = nowUs + Math.max(decision.resetUs, 0)
            const used = algorithm.decide({ state: stored, hits: 1, nowUs: later, limit })
            const fresh = algorithm.decide({ state: undefined, hits: 1, nowUs: later, limit })
            expect([used.admitted, used.remaining]).toEqual([fresh.admitted, fresh.remaining])
          })
        }),
      )
    })

    test('remainingAfter() never returns more hits than remain at that time', () => {
      const elapsed = fc.integer({ min: 0, max: 2 ** 33 })
      const property = fc.property(limits, steps, elapsed, (parameters, history, elapsedUs) => {
        const limit = limitOf(parameters)
        replayHistory(limit, history, ({ state, nowUs, decision }) => {
          const stored = decision.next ?? state
          const later = elapsedUs < decision.expiresInUs ? stored : undefined
          const peek = { state: later, hits: 0, nowUs: nowUs + elapsedUs, limit }
          const lowerBound = algorithm.remainingAfter(decision, elapsedUs, limit)
          expect(lowerBound).toBeLessThanOrEqual(algorithm.decide(peek).remaining)
          expect(lowerBound).toBeGreaterThanOrEqual(0)
        })
      })
      fc.assert(property)
    })
  },
)
