// The list of all algorithms that rules may name. The contract suite, the script of Redis and the
// validation of rules are derived from it. Only this file and an algorithm's own files name the
// algorithm.
import type { Algorithm } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { slidingWindowCounter } from './sliding-window-counter.ts'
import { slidingWindowLog } from './sliding-window-log.ts'
import { tokenBucket } from './token-bucket.ts'

/** Every algorithm. */
export const algorithms: readonly Algorithm[] = [
  fixedWindow,
  slidingWindowLog,
  slidingWindowCounter,
  tokenBucket,
  leakyBucket,
]

/** The algorithm of rules without one, and of overrides; counts like envoyproxy/ratelimit. */
export const defaultAlgorithm: Algorithm = fixedWindow

/** The algorithm with this name in rules. */
export function findAlgorithm(name: string): Algorithm | undefined {
  return algorithms.find((each) => each.name === name)
}
