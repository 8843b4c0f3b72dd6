// The list of all algorithms that rules may name. The contract suite, the documentation and the
// validation of rules are derived from it.
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
