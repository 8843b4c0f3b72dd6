// Leaky bucket: admits no burst. One hit per window ÷ requests; an earlier one is denied with the
// exact wait, since a limiter cannot delay a request.
import type { Algorithm } from './algorithm.ts'
import { decideByDrain } from './token-bucket.ts'

/** The token bucket's state, for a bucket of one hit, or of the hits of a call. */
export const leakyBucket: Algorithm = {
  name: 'leaky_bucket',
  takesBurst: false,
  // More hits than a window admits are never admitted, as with the other algorithms.
  decide: (input) =>
    decideByDrain(input, {
      burst: Math.max(1, Math.min(input.cost, input.limit.requests)),
      singleHits: 1,
    }),
}
