// Keeps a part that is slow, hung or gone from holding up anybody: a deadline for each call, and
// after some failures in a row no calls at all until the part answers a probe. A part whose late
// answers are of use too is slow as long as they come: it is still asked, and not waited for.
import { createDeadlineQueue } from './deadline-queue.ts'
import { pause, within } from './deadline.ts'

/** A call without an answer at its deadline. */
export interface Late<T> {
  /**
   * The answer whenever it comes, or `undefined` if the call failed; never rejects, and is bounded
   * by the call itself. Absent: the call was not made.
   */
  readonly later: Promise<T | undefined> | undefined
}

/** A part behind its guard. */
export interface Guard {
  /**
   * What `call` gives, which is never `undefined`; or `undefined`, at the deadline at the latest:
   * the part did not answer. Never rejects.
   */
  readonly ask: <T>(call: () => Promise<T>) => Promise<T | undefined>
  /** As `ask`, for calls whose late answers are of use: a part that gives some is asked on. */
  readonly askForLate: <T>(call: () => Promise<T>) => Promise<T | Late<T>>
  /** Whether the part has left its calls unanswered for so long that it will not answer them. */
  readonly isSilent: () => boolean
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
/** A part is slow, and not hung, if its last late answer is no older than this. */
const SILENT_MS = 1000
/** A part that is back is seen within the sum of both. */
const PROBE_EVERY_MS = 100
const PROBE_MS_MAX = 250

/** Guards a part. */
export function createGuard(options: GuardOptions): Guard {
  const deadlines = createDeadlineQueue(options.callMsMax, options.nowMs)
  const { isSlow, isSilent, isAway, noteCall, noteAnswer, noteFailure, stop } = watch(options)
  const make = async <T>(call: () => Promise<T>): Promise<T> => {
    noteCall()
    return call()
  }
  const waitFor = async <T>(made: Promise<T>): Promise<T | undefined> => {
    try {
      const answer = await deadlines.within(made)
      if (answer === undefined) noteFailure('late')
      else noteAnswer('in time')
      return answer
    } catch (error) {
      noteFailure(error)
      return undefined
    }
  }
  const waitForLate = async <T>(made: Promise<T>): Promise<T | undefined> => {
    try {
      const answer = await made
      noteAnswer('late')
      return answer
    } catch {
      return undefined // told before: as this failure, or as a late call
    }
  }
  return {
    async ask(call) {
      if (!isAway()) return waitFor(make(call))
      options.onFailure('away')
      return undefined
    },
    async askForLate(call) {
      if (isAway()) {
        options.onFailure('away')
        return { later: undefined }
      }
      const made = make(call)
      const answered = waitFor(made)
      const answer = isSlow() ? undefined : await answered
      return answer ?? { later: answered.then((inTime) => inTime ?? waitForLate(made)) }
    },
    isSilent,
    isAway,
    stop,
  }
}

/** What is known of a part. */
interface Watch extends Pick<Guard, 'isSilent' | 'isAway' | 'stop'> {
  readonly isSlow: () => boolean
  readonly noteCall: () => void
  readonly noteAnswer: (when: 'in time' | 'late') => void
  readonly noteFailure: (why: unknown) => void
}

/** Follows whether a part answers, is slow or is left alone. */
function watch({ onFailure, onAway, nowMs, callMsMax, probe }: GuardOptions): Watch {
  const ending = new AbortController()
  let failedSpans = 0
  let spanEndMs = -Infinity
  let probing: { readonly ended: Promise<void>; readonly cancel: () => void } | undefined
  let isSlow = false
  /** When the first call was made since the part last answered, if there was one. */
  let askedMs: number | undefined

  const isSilent = () => askedMs !== undefined && nowMs() - askedMs >= SILENT_MS
  const leaveAlone = () => {
    isSlow = false
    onAway(true)
    const back = new AbortController()
    const cancel = () => {
      back.abort()
    }
    const ended = probeUntil(AbortSignal.any([ending.signal, back.signal]), probe).finally(() => {
      failedSpans = 0
      askedMs = undefined
      probing = undefined
      if (!ending.signal.aborted) onAway(false)
    })
    probing = { ended, cancel }
  }
  return {
    isSlow: () => isSlow,
    isSilent,
    isAway: () => probing !== undefined,
    noteCall() {
      askedMs ??= nowMs()
    },
    noteAnswer(when: 'in time' | 'late') {
      askedMs = undefined
      isSlow = when === 'late'
      if (isSlow) probing?.cancel()
      else failedSpans = 0
    },
    noteFailure(why: unknown) {
      onFailure(why)
      const nowAtMs = nowMs()
      if (nowAtMs < spanEndMs) return
      spanEndMs = nowAtMs + callMsMax
      failedSpans++
      if (failedSpans < FAILED_SPANS_MAX || (isSlow && !isSilent())) return
      if (probing === undefined && !ending.signal.aborted) leaveAlone()
    },
    async stop() {
      ending.abort()
      await probing?.ended
    },
  }
}

/** Probes until a probe is answered, or `ended` aborts. */
async function probeUntil(ended: AbortSignal, probe: () => Promise<unknown>): Promise<void> {
  const isAnswered = () =>
    within(PROBE_MS_MAX, probe(), () => new Error('late')).then(
      () => true,
      () => false, // it is away still; the failures that led here have been told
    )
  do await pause(PROBE_EVERY_MS, ended)
  while (!ended.aborted && !(await isAnswered()))
}
