// Checks admitted requests against a token bucket, over every interval: in the order in which their
// responses arrived, with the extra tokens that restarts and lost counters may give.
import type { Bucket } from '../../../envoy/allowance.ts'

/** The admissions of one client. */
export interface AdmissionLedger {
  /** Records a response that admits one request. */
  admit(): void
  /** Allows `hits` more: now, or soon if the client is idle. */
  credit(hits: number): void
  /** The number of admissions so far. */
  admitted(): number
  /** The largest number of requests by which any interval exceeds the bucket; negative: none. */
  excess(): number
}

/** After lost counters, the limiter uses those of Redis within this time. */
const SPARE_MS = 3000

/** Creates a ledger for a bucket; `slack` is the number of requests in flight at once. */
export function createLedger(bucket: Bucket, slack: number): AdmissionLedger {
  let [admitted, used, usedMax, updatedMs] = [0, 0, 0, performance.now()]
  /** What is left of a credit that an idle client got: it can be used up to a time. */
  let [spare, spareUntilMs] = [0, 0]
  const drain = () => {
    const nowMs = performance.now()
    used = Math.max(0, used - (bucket.perSecond * (nowMs - updatedMs)) / 1000)
    updatedMs = nowMs
    if (nowMs > spareUntilMs) spare = 0
  }
  return {
    admit() {
      drain()
      admitted++
      used++
      if (used > bucket.burst + slack && spare >= 1) {
        used--
        spare--
      }
      usedMax = Math.max(usedMax, used)
    },
    credit(hits) {
      drain()
      spare = Math.max(spare, hits - used)
      spareUntilMs = updatedMs + SPARE_MS
      used = Math.max(0, used - hits)
    },
    admitted: () => admitted,
    excess: () => usedMax - bucket.burst - slack,
  }
}
