// The last rejected versions, by the digest of their content: content that a server re-sends, under
// any version, gets the same rejection without a parse, after a growing delay, so that server and
// client do not exchange it at full speed.
import type { RuleFault } from '../../limits/rule.ts'
import { pause, type Pause } from '../../resilience/deadline.ts'

/** The delay before the second rejection in a row, in milliseconds; doubles with each. */
const DELAY_MS_MIN = 1000
/** The maximum delay, in milliseconds. */
const DELAY_MS_MAX = 60_000
/** Replicas of a control plane, or good and bad content in turns, send few different versions. */
const VERSIONS_MAX = 4

/** The last rejected versions. */
export interface RejectedVersions {
  /**
   * Waits if content with this digest was rejected since a version was accepted. Then returns its
   * faults, or `undefined` if it must be parsed. If `signal` aborts, it returns the faults at once.
   */
  recall(digest: string, signal: AbortSignal): Promise<readonly RuleFault[] | undefined>
  /** Adds a version. If `isRetryable`, it is parsed when it arrives later. */
  add(
    digest: string,
    rejection: { readonly faults: readonly RuleFault[]; readonly isRetryable: boolean },
  ): void
  /** After a version was accepted. */
  resetDelays(): void
}

interface Rejected {
  readonly faults: readonly RuleFault[]
  readonly isRetryable: boolean
  /** The rejections since a version was accepted. */
  rejections: number
}

/** Starts without a rejected version. */
export function createRejectedVersions(wait: Pause = pause): RejectedVersions {
  const versions = new Map<string, Rejected>()
  return {
    async recall(digest, signal) {
      const known = versions.get(digest)
      if (known === undefined) return undefined
      const { faults, isRetryable, rejections } = known
      known.rejections += 1
      if (rejections > 0) {
        await wait(Math.min(DELAY_MS_MIN * 2 ** Math.min(rejections - 1, 30), DELAY_MS_MAX), signal)
      }
      return isRetryable && !signal.aborted ? undefined : faults
    },
    add(digest, rejection) {
      const rejections = versions.get(digest)?.rejections ?? 1
      versions.delete(digest) // so that it is the newest
      versions.set(digest, { ...rejection, rejections })
      const [oldest] = versions.keys()
      if (versions.size > VERSIONS_MAX && oldest !== undefined) versions.delete(oldest)
    },
    resetDelays() {
      for (const known of versions.values()) known.rejections = 0
    },
  }
}
