// Keeps a counter store that is slow, hung or gone from holding up anybody: a deadline for each
// call, and after some failures in a row no calls at all until the store answers a probe.
import type { Decision } from '../limits/algorithm.ts'
import type { CounterCharge, CounterStore } from '../limits/counter-store.ts'
import { pause, within } from '../process/deadline.ts'
import { createDeadlineQueue } from './deadline-queue.ts'

/** A store behind its guard. */
export interface GuardedStore {
  /** The decisions, or `undefined` at the deadline at the latest: the store did not answer. */
  charge(charges: readonly CounterCharge[]): Promise<readonly Decision[] | undefined>
  /** Whether the store is left alone until it answers a probe. */
  isAway(): boolean
  /** Ends the probing. */
  stop(): Promise<void>
}

/**
 * Times in a row, each as long as a call may take, in which no call was answered before the store
 * is left alone. Calls that fail at once count once: a pause of our own makes many late together.
 */
const FAILED_SPANS_MAX = 5
/** A store that is back is seen within the sum of both. */
const PROBE_EVERY_MS = 100
const PROBE_MS_MAX = 250

/** Guards a store. */
export function guardStore(options: {
  readonly store: CounterStore & { probe(): Promise<void> }
  /** How long a call may take. */
  readonly callMsMax: number
  /** Monotonic. */
  readonly nowMs: () => number
  /** Told of each call without an answer: `late`, `away` if it was not made, or the error. */
  readonly onFailure: (why: unknown) => void
  /** Told when the store is left alone, and when it is used again. */
  readonly onAway: (isAway: boolean) => void
}): GuardedStore {
  const { store, onFailure, onAway } = options
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
    within(PROBE_MS_MAX, store.probe(), () => new Error('late')).then(
      () => true,
      () => false, // it is away still; the failures that led here have been told
    )
  return {
    async charge(charges) {
      if (probing !== undefined) {
        onFailure('away')
        return undefined
      }
      try {
        const decisions = await deadlines.within(store.charge(charges))
        if (decisions === undefined) noteFailure('late')
        else failedSpans = 0
        return decisions
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
