// Examples of an algorithm's decisions, as tests.
import { expect, test } from '@jest/globals'
import type { Algorithm, CounterState, Decision, Limit } from '../../src/limits/algorithm.ts'

/** In microseconds. */
export const SECOND = 1_000_000
/** The window of `perMinute`, in microseconds. */
export const MINUTE = 60 * SECOND
/** The start of a window. */
export const START = 1_800_000_000 * SECOND

/** The state, the hits, and the decision: all of it but what is 0, false or undefined. */
type Example = readonly [
  title: string,
  state: CounterState | undefined,
  hits: number,
  decision: Partial<Decision>,
]

/** A limit whose denied hits do not count. */
export function perMinute(requests: number, burst = requests): Limit {
  return { requests, windowUs: MINUTE, burst, denyConsumes: false }
}

/** Defines a test of each example. */
export function defineExamples(
  algorithm: Algorithm,
  { limit, nowUs }: { readonly limit: Limit; readonly nowUs: number },
  examples: readonly Example[],
): void {
  const nothing = { admitted: false, remaining: 0, over: 0, resetUs: 0, retryAfterUs: 0 }
  test.each(examples)(`${algorithm.name}: %s`, (...example) => {
    const [, state, hits, decision] = example
    expect(algorithm.decide({ state, hits, nowUs, limit })).toEqual({
      ...nothing,
      next: undefined,
      expiresInUs: decision.resetUs ?? 0,
      ...decision,
    })
  })
}
