// Leaky bucket: admits no burst, but one hit per `windowUs` ÷ `requests`. A hit that arrives too
// early is denied with the exact wait, because a limiter cannot delay a request.
import { type Algorithm, REQUESTS_MAX } from './algorithm.ts'
import { bucketNumbers, checkBucket, decideBucket } from './token-bucket.ts'

/** State: that of a token bucket. The capacity is one hit, or all hits of a call with several. */
export const leakyBucket: Algorithm = {
  name: 'leaky_bucket',
  takesBurst: false,
  denyConsumesByDefault: false,
  maxRequests: REQUESTS_MAX,
  checkLimit: checkBucket,
  scriptNumbers: bucketNumbers,
  drains: true,
  refundableUs: () => Infinity,
  remainingAfter: ({ remaining }) => remaining,
  // A call with more hits than `requests` is never admitted.
  decide: (input) =>
    decideBucket(input, {
      burst: Math.max(1, Math.min(input.hits, input.limit.requests)),
      singleHits: 1,
    }),
}
