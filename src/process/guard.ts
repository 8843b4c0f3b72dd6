// Keeps a part that is slow, hung or gone from holding up anybody: a deadline for each call, and
// after some failures in a row no calls at all until the part answers a probe.
import { createDeadlineQueue } from './deadline-queue.ts'
import { pause, within } from './deadline.ts'

/** A part behind its guard. */
export interface Guard {
  /**
   * What `call` gives, which is never `undefined`; or `undefined`, at the deadline at the latest:
   * the part did not answer. Never rejects.
   */
  readonly ask: <T>(call: () => Promise<T>) => Promise<T | undefined>
  /** Whether the part is left alone until it answers a probe. */
  readonly isAway: () => boolean
  /** Ends the probing. */
  readonly stop: () => Promise<void>
}

/** What a guard works with. */
export interface GuardOptions {
  /** Resolves if the part does its work again; given up after PROBE_MS_MAX. */
  readonly probe: () => Promise<unknown>
  /** How long a call may take. */
  readonly callMsMax: number
  /** Monotonic. */
  readonly nowMs: () => number
  /** Told of each call without an answer: `late`, `away` if it was not made, or the error. */
  readonly onFailure: (why: unknown) => void
  /** Told when the part is left alone, and when it is used again. */
  readonly onAway: (isAway: boolean) => void
}

/**
 * Times in a row, each as long as a call may take, in which no call was answered before the part
 * is left alone. Calls that fail at once count once: a pause of our own makes many late together.
 */
const FAILED_SPANS_MAX = 5
/** A part that is back is seen within the sum of both. */
const PROBE_EVERY_MS = 100
const PROBE_MS_MAX = 250

/** Guards a part. */
export function createGuard(options: GuardOptions): Guard {
  const { onFailure, onAway } = options
  const deadlines = createDeadlineQueue(options.callMsMax, options.nowMs)
  const ending = new AbortController()
  let failedSpans = 0
  let spanEndMs = -Infinity
  let probing: Promise<void> | undefined

  const noteFailure = (why: unknown) => {
    onFailure(why)
    const nowAtMs = options.nowMs()
    if (nowAtMs < spanEndMs) return
    spanEndMs = nowAtMs + options.callMsMax
    failedSpans++
    if (failedSpans < FAILED_SPANS_MAX || probing !== undefined || ending.signal.aborted) return
    onAway(true)
    probing = probeUntilBack().finally(() => {
      failedSpans = 0
      probing = undefined
      if (!ending.signal.aborted) onAway(false)
    })
  }
  const probeUntilBack = async () => {
    while (!ending.signal.aborted) {
      await pause(PROBE_EVERY_MS, ending.signal)
      if (await answersProbe()) return
    }
  }
  const answersProbe = () =>
    within(PROBE_MS_MAX, options.probe(), () => new Error('late')).then(
      () => true,
      () => false, // it is away still; the failures that led here have been told
    )
  return {
    async ask(call) {
      if (probing !== undefined) {
        onFailure('away')
        return undefined
      }
      try {
        const answer = await deadlines.within(call())
        if (answer === undefined) noteFailure('late')
        else failedSpans = 0
        return answer
      } catch (error) {
        noteFailure(error)
        return undefined
      }
    },
    isAway: () => probing !== undefined,
    async stop() {
      ending.abort()
      await probing
    },
  }
}
