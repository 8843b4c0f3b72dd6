// Checks admitted requests against a token bucket, over every interval: in the order in which their
// responses arrived, with the extra tokens that restarts and lost counters may give.
import type { Bucket } from '../../../envoy/allowance.ts'

/** The admissions of one client. */
export interface AdmissionLedger {
  /** Records a response that admits one request. */
  admit(): void
  /** Allows `hits` more. */
  credit(hits: number): void
  /** The number of admissions so far. */
  admitted(): number
  /** The largest number of requests by which any interval exceeds the bucket; negative: none. */
  excess(): number
}

/** Creates a ledger for a bucket; `slack` is the number of requests in flight at once. */
export function createLedger(bucket: Bucket, slack: number): AdmissionLedger {
  let [admitted, used, usedMax, updatedMs] = [0, 0, 0, performance.now()]
  const drain = () => {
    const nowMs = performance.now()
    used = Math.max(0, used - (bucket.perSecond * (nowMs - updatedMs)) / 1000)
    updatedMs = nowMs
  }
  return {
    admit() {
      drain()
      admitted++
      used++
      usedMax = Math.max(usedMax, used)
    },
    credit(hits) {
      drain()
      used = Math.max(0, used - hits)
    },
    admitted: () => admitted,
    excess: () => usedMax - bucket.burst - slack,
  }
}
