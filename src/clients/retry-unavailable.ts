// Retries of requests to an API that was reached, but is unavailable, for a bounded time.
import { pause as defaultPause, type Pause } from '../resilience/deadline.ts'
import { createBackOff, fromHalf } from '../resilience/retry-until-deadline.ts'
import { UnavailableError } from './admin-client.ts'

/** Maximum attempts of one request; the pauses between them are 20 to 40 s in total. */
const ATTEMPTS_MAX = 10
const PAUSES = { firstMs: 250, maxMs: 8000 }

/** How to retry. */
export interface RetryOptions {
  /** Stops the retries. */
  readonly signal: AbortSignal
  /** Called before a request is retried. */
  readonly onRetry: (cause: UnavailableError) => void
  /** Whether the API has already responded to other requests. @default false */
  readonly isReached?: boolean
  /**
   * Whether a request that the API possibly received shows that the API was reached; otherwise
   * only a response does. @default false
   */
  readonly isReachedIfSent?: boolean
  /** Waits before a retry; replaced in tests. */
  readonly pause?: Pause
}

/** Runs `call`, and retries it while it throws UnavailableError; resolves to its result. */
export type Retry = <T>(call: () => Promise<T>) => Promise<T>

/** Creates the function that retries; an API that was never reached is reported immediately. */
export function createRetry(options: RetryOptions): Retry {
  const { signal, onRetry, isReachedIfSent = false, pause = defaultPause } = options
  let { isReached = false } = options
  return async (call) => {
    const backOff = createBackOff({ signal, pause, pauses: PAUSES, random: fromHalf })
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await call()
        isReached = true
        return result
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error
        isReached ||= error.status !== undefined || (isReachedIfSent && error.isSent)
        if (!isReached || attempt === ATTEMPTS_MAX || signal.aborted) throw error
        onRetry(error)
        await backOff()
      }
    }
  }
}
