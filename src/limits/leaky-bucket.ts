// Leaky bucket: no bursts pass. One hit per window ÷ requests; an earlier one is denied with the
// exact wait, since a limiter cannot hold a request back.
import type { Algorithm } from './algorithm.ts'
import { decideByDrain } from './token-bucket.ts'

/** State as the token bucket's, for a bucket of one, or of the hits of a call. */
export const leakyBucket: Algorithm = {
  name: 'leaky_bucket',
  takesBurst: false,
  // More hits than a window lets through never pass, as with the other algorithms.
  decide: (charge) =>
    decideByDrain(charge, {
      burst: Math.max(1, Math.min(charge.cost, charge.limit.requests)),
      room: 1,
    }),
}
