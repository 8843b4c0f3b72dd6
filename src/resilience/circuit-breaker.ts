// A circuit breaker with a deadline for each call, so that a slow, hung or unreachable dependency
// blocks no caller. It opens after consecutive failures, and closes when a probe succeeds or a
// delayed result arrives. It stays closed while delayed results arrive that the caller can use.
import { createDeadlineQueue } from './deadline-queue.ts'
import { pause, within } from './deadline.ts'

/**
 * A call without a result by its deadline. While the dependency is slow, results are not awaited:
 * each call resolves to this immediately.
 */
export interface TimedOut<T> {
  /**
   * Resolves to the delayed result, or to `undefined` if the call fails; never rejects. The
   * property is `undefined` if no call was sent, because the circuit was open.
   */
  readonly delayedResult: Promise<T | undefined> | undefined
}

/** Runs the calls of one dependency. */
export interface CircuitBreaker {
  /**
   * Resolves to the result of `call`, which must not be `undefined`. Resolves to `undefined` if the
   * call fails, at its deadline, or if the circuit is open. Never rejects.
   */
  readonly run: <T>(call: () => Promise<T>) => Promise<T | undefined>
  /** As `run`, for calls whose delayed results are usable: they keep the circuit closed. */
  readonly runWithDelayedResult: <T>(call: () => Promise<T>) => Promise<T | TimedOut<T>>
  /** Whether calls have had no response for UNRESPONSIVE_MS. */
  readonly isUnresponsive: () => boolean
  /** Whether the circuit is open: no calls are sent. */
  readonly isOpen: () => boolean
  /** Stops the probes. */
  readonly stop: () => Promise<void>
}

/** Options of a circuit breaker. */
export interface CircuitBreakerOptions {
  /** Resolves if the dependency responds; the breaker waits for at most PROBE_MS_MAX. */
  readonly probe: () => Promise<unknown>
  /** The deadline of a call, in milliseconds. */
  readonly callMsMax: number
  /** Monotonic. */
  readonly nowMs: () => number
  /** Called for each failed call: `timeout`, `unavailable` (circuit open), or the error. */
  readonly onFailure: (reason: unknown) => void
  /** Called for each failed probe: its cause may differ from that of the failed calls. */
  readonly onProbeFailure?: (error: unknown) => void
  /**
   * Called when the breaker opens or closes. `isProbed`: it closes after a successful probe, not
   * after a delayed result.
   */
  readonly onOpenChange: (isOpen: boolean, isProbed: boolean) => void
}

/**
 * The breaker opens after failures in this many periods of `callMsMax`; a result within its
 * deadline resets the count. Failures within one period count once: if this process stalls, many
 * calls time out together.
 */
const FAILED_PERIODS_MAX = 5
/** A dependency is hung, not slow, if its calls have had no result for this long. */
const UNRESPONSIVE_MS = 1000
/** Interval and deadline of probes; a recovery is detected within their sum. */
const PROBE_EVERY_MS = 100
const PROBE_MS_MAX = 250

/** Creates a closed circuit breaker. */
export function createCircuitBreaker(options: CircuitBreakerOptions): CircuitBreaker {
  const deadlines = createDeadlineQueue(options.callMsMax, options.nowMs)
  const { isSlow, isUnresponsive, isOpen, noteCall, noteResult, noteFailure, stop } =
    trackState(options)
  const start = async <T>(call: () => Promise<T>): Promise<T> => {
    noteCall()
    return call()
  }
  const waitFor = async <T>(started: Promise<T>): Promise<T | undefined> => {
    try {
      const result = await deadlines.within(started)
      if (result === undefined) noteFailure('timeout')
      else noteResult('within-deadline')
      return result
    } catch (error) {
      noteFailure(error)
      return undefined
    }
  }
  const waitForDelayed = async <T>(started: Promise<T>): Promise<T | undefined> => {
    try {
      const result = await started
      noteResult('delayed')
      return result
    } catch {
      return undefined // already reported, as this failure or as a timeout
    }
  }
  return {
    async run(call) {
      if (!isOpen()) return waitFor(start(call))
      options.onFailure('unavailable')
      return undefined
    },
    async runWithDelayedResult(call) {
      if (isOpen()) {
        options.onFailure('unavailable')
        return { delayedResult: undefined }
      }
      const started = start(call)
      const waiting = waitFor(started)
      const result = isSlow() ? undefined : await waiting
      return result ?? { delayedResult: waiting.then((value) => value ?? waitForDelayed(started)) }
    },
    isUnresponsive,
    isOpen,
    stop,
  }
}

/** Tracks whether a dependency responds, and how fast; opens and closes the breaker. */
function trackState(options: CircuitBreakerOptions) {
  const { onFailure, onOpenChange, nowMs, callMsMax } = options
  const stopping = new AbortController()
  let failedPeriods = 0
  let periodEndMs = -Infinity
  let probing: { readonly done: Promise<void>; readonly cancel: () => void } | undefined
  /** Whether the last result arrived after its deadline. */
  let isSlow = false
  /** Start of the first call since the last response, if any. */
  let unresponsiveSinceMs: number | undefined

  const isUnresponsive = () =>
    unresponsiveSinceMs !== undefined && nowMs() - unresponsiveSinceMs >= UNRESPONSIVE_MS
  const open = () => {
    isSlow = false
    onOpenChange(true, false)

    const recovered = new AbortController()
    const cancel = () => {
      recovered.abort()
    }
    const aborted = AbortSignal.any([stopping.signal, recovered.signal])
    const done = probeUntil(aborted, options).finally(() => {
      failedPeriods = 0
      unresponsiveSinceMs = undefined
      probing = undefined
      if (!stopping.signal.aborted) onOpenChange(false, !recovered.signal.aborted)
    })
    probing = { done, cancel }
  }
  return {
    isSlow: () => isSlow,
    isUnresponsive,
    isOpen: () => probing !== undefined,
    noteCall: () => {
      unresponsiveSinceMs ??= nowMs()
    },
    noteResult: (when: 'within-deadline' | 'delayed') => {
      unresponsiveSinceMs = undefined
      isSlow = when === 'delayed'
      if (isSlow) probing?.cancel()
      else failedPeriods = 0
    },
    noteFailure: (reason: unknown) => {
      onFailure(reason)
      const nowAtMs = nowMs()
      if (nowAtMs < periodEndMs) return
      periodEndMs = nowAtMs + callMsMax
      failedPeriods++
      if (failedPeriods < FAILED_PERIODS_MAX || (isSlow && !isUnresponsive())) return
      if (probing === undefined && !stopping.signal.aborted) open()
    },
    stop: async () => {
      stopping.abort()
      await probing?.done
    },
  }
}

/** Probes until a probe succeeds or `signal` aborts. */
async function probeUntil(
  signal: AbortSignal,
  { probe, onProbeFailure }: Pick<CircuitBreakerOptions, 'probe' | 'onProbeFailure'>,
): Promise<void> {
  const succeeds = async () => {
    try {
      await within(PROBE_MS_MAX, probe(), () => new Error('timeout'))
      return true
    } catch (error) {
      if (!signal.aborted) onProbeFailure?.(error)
      return false
    }
  }
  do await pause(PROBE_EVERY_MS, signal)
  while (!signal.aborted && !(await succeeds()))
}
