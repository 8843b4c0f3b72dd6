// Calls a store until it returns something: without an end for what has to be known before anything
// else can be done, or until the deadline of one request. Pauses grow and are drawn at random, as
// clients that contend for one row would otherwise fail together each time.
import { type Clock, pause, type Pause } from './deadline.ts'
import { type FailedOutcome, StoreError } from './store-error.ts'

/** How to wait before a retry; tests, whose clock is their own, pass others. */
export interface RetryDeps {
  readonly pause?: Pause
  /** From 0 to 1. @default Math.random */
  readonly random?: () => number
}

/** What a store returned, or that it failed. */
export async function answerOf<T>(call: Promise<T>): Promise<T | 'failed'> {
  try {
    return await call
  } catch (error) {
    if (error instanceof StoreError) return 'failed'
    throw error
  }
}

/** What a store returned, or what is known of the call that failed. */
export async function outcomeOf<T>(call: Promise<T>): Promise<T | FailedOutcome> {
  try {
    return await call
  } catch (error) {
    if (error instanceof StoreError) return error.outcome
    throw error
  }
}

/** The first pause is at most twice this long; the bound doubles with each failure. */
export const PAUSE_MS = 10
const PAUSE_MS_MAX = 1000
/** Of a request: a row that many clients contend for is decided within some tens of ms. */
const REQUEST_PAUSE_MS_MAX = 320

function backOffMs(failures: number, { random = Math.random }: RetryDeps, mostMs: number): number {
  const bound = Math.min(PAUSE_MS * 2 ** Math.min(failures, 10), mostMs)
  return Math.max(1, Math.round(bound * random()))
}

/** What the store returns in the end, or `stopped` once `signal` aborts. Waits between tries. */
export async function untilAnswered<T>(
  deps: RetryDeps & { readonly signal: AbortSignal },
  ask: () => Promise<T>,
): Promise<T | 'stopped'> {
  for (let failures = 1; !deps.signal.aborted; failures++) {
    const answer = await answerOf(ask())
    if (answer !== 'failed') return answer
    await (deps.pause ?? pause)(backOffMs(failures, deps, PAUSE_MS_MAX), deps.signal)
  }
  return 'stopped'
}

/** The retries of one step of a request. */
export interface Retries {
  /** Waits before a retry; `false` once the deadline has passed. */
  wait(): Promise<boolean>
  /**
   * What the store returns. `failed` at the deadline, or as soon as the store rejects the call: it
   * is full, or known to be unavailable, and a retry would only keep the client waiting.
   */
  answer<T>(ask: () => Promise<T>): Promise<T | 'failed'>
}

/** Retries until `deadlineMs` of the monotonic clock, give or take one call of the store. */
export function retriesUntil(
  deadlineMs: number,
  deps: RetryDeps & { readonly monotonicMs: Clock },
): Retries {
  let failures = 0
  const wait = async () => {
    const leftMs = deadlineMs - deps.monotonicMs()
    if (leftMs <= 0) return false
    const backOff = backOffMs(++failures, deps, REQUEST_PAUSE_MS_MAX)
    await (deps.pause ?? pause)(Math.min(backOff, leftMs))
    return deps.monotonicMs() < deadlineMs
  }
  return {
    wait,
    async answer(ask) {
      do {
        const outcome = await outcomeOf(ask())
        if (outcome === 'not-done') return 'failed'
        if (outcome !== 'unknown') return outcome
      } while (await wait())
      return 'failed'
    },
  }
}
