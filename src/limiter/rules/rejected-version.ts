// The last rejected version: a server that re-sends it unchanged after each rejection gets the same
// rejection after a growing delay, so that server and client do not exchange it at full speed.
import { pause, type Pause } from '../../resilience/deadline.ts'

/** The delay before the second rejection of a version, in milliseconds; doubles with each. */
const DELAY_MS_MIN = 1000
/** The maximum delay, in milliseconds. */
const DELAY_MS_MAX = 60_000

/** The last rejected version. */
export interface RejectedVersion {
  /**
   * Waits if `id` is the last rejected version. Then returns the reason of the rejection, or
   * `undefined` if the version must be parsed. If `signal` aborts, it returns the reason at once.
   */
  recall(id: string, signal: AbortSignal): Promise<string | undefined>
  /** Replaces the last rejected version. If `isRetryable`, it is parsed when it arrives later. */
  set(id: string, rejection: { readonly reason: string; readonly isRetryable: boolean }): void
  /** After a version was accepted. */
  clear(): void
}

/** Starts without a rejected version. */
export function createRejectedVersion(wait: Pause = pause): RejectedVersion {
  let last: { id: string; reason: string; isRetryable: boolean; repeats: number } | undefined
  return {
    async recall(id, signal) {
      if (last?.id !== id) return undefined
      const { reason, isRetryable, repeats } = last
      last = { ...last, repeats: repeats + 1 }
      await wait(Math.min(DELAY_MS_MIN * 2 ** Math.min(repeats, 30), DELAY_MS_MAX), signal)
      return isRetryable && !signal.aborted ? undefined : reason
    },
    set(id, rejection) {
      last = { id, ...rejection, repeats: last?.id === id ? last.repeats : 0 }
    },
    clear() {
      last = undefined
    },
  }
}
