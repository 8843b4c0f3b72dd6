// Retries a conditional change while its outcome is unknown or a concurrent change preceded it.
// Bounded in attempts and duration.
import {
  type Clock,
  monotonicMs as defaultMonotonicMs,
  pause as defaultPause,
  type Pause,
} from '../../resilience/deadline.ts'
import { fromHalf } from '../../resilience/retry-until-deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'

/** The result of one attempt: the value, or that it must be retried. */
export type Attempted<T> = { readonly done: T } | 'retry'

/** Options that tests replace. */
export interface RetryOptions {
  /** Waits before a retry. */
  readonly pause?: Pause
  readonly monotonicMs?: Clock
}

const ATTEMPTS_MAX = 12
const TOTAL_MS_MAX = 4000
const PAUSE_MS = 10
const PAUSE_MS_MAX = 320

/**
 * Runs `attempt` until it is done. An attempt must be safe to retry: it starts with a serial read,
 * which settles an unknown outcome, or with a conditional write that leads to the same result if an
 * earlier attempt was applied. Throws StoreError: `not-done` only if no attempt can have changed
 * anything.
 */
export async function retryUnknown<T>(
  attempt: () => Promise<Attempted<T>>,
  { pause = defaultPause, monotonicMs = defaultMonotonicMs }: RetryOptions = {},
): Promise<T> {
  const deadlineMs = monotonicMs() + TOTAL_MS_MAX
  let wasUnknown = false
  let last: StoreError | undefined
  const mayRetry = (count: number) => count < ATTEMPTS_MAX && monotonicMs() < deadlineMs
  for (let count = 0; count === 0 || mayRetry(count); count++) {
    if (count > 0) await pause(Math.min(PAUSE_MS * 2 ** count, PAUSE_MS_MAX) * fromHalf())
    try {
      const attempted = await attempt()
      if (attempted !== 'retry') return attempted.done
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (error.outcome === 'not-done' && !wasUnknown) throw error
      wasUnknown = true
      last = error
    }
  }
  throw new StoreError('Cassandra did not settle a change within the deadline', {
    outcome: wasUnknown ? 'unknown' : 'not-done',
    cause: last,
  })
}
