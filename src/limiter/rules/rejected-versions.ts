// The last rejected versions, by the digest of their content: content that a server re-sends, under
// any version string, gets the same rejection without a parse, after a growing delay. Without the
// delay, server and client would exchange it at full speed.
import type { RuleFault } from '../../limits/rule.ts'
import { type Clock, monotonicMs, pause, type Pause } from '../../resilience/deadline.ts'

/** Delay before the second rejection of the same content, in ms; doubled for each later one. */
const DELAY_MS_MIN = 1000
/** The maximum delay, in ms. Content last received at least this long ago has no delay. */
const DELAY_MS_MAX = 60_000
/** The replicas of a control plane send few different versions, even if they alternate. */
const VERSIONS_MAX = 4

/** Why a version was rejected. */
interface RejectedVersion {
  readonly faults: readonly RuleFault[]
  /** Whether the content is parsed when it arrives next, because the parser itself failed. */
  readonly isRetryable: boolean
}

/** The last rejected versions. */
export interface RejectedVersions {
  /**
   * Waits if content with this digest was rejected within the last minute. Then returns the
   * rejection, or `undefined` if it must be parsed. If `signal` aborts, it returns immediately.
   */
  recall(digest: string, signal: AbortSignal): Promise<RejectedVersion | undefined>
  /** Adds a version. */
  add(digest: string, rejection: RejectedVersion): void
}

interface VersionEntry {
  readonly rejection: RejectedVersion
  /** Number of rejections; reset when the content has not arrived for DELAY_MS_MAX. */
  rejections: number
  /** The time of the last rejection. */
  lastMs: number
}

/** Starts without a rejected version. */
export function createRejectedVersions({
  wait = pause,
  nowMs = monotonicMs,
}: { readonly wait?: Pause; readonly nowMs?: Clock } = {}): RejectedVersions {
  const versions = new Map<string, VersionEntry>()
  return {
    async recall(digest, signal) {
      const known = versions.get(digest)
      if (known === undefined) return undefined
      const { rejection } = known
      const rejections = nowMs() - known.lastMs >= DELAY_MS_MAX ? 0 : known.rejections
      known.rejections = rejections + 1
      if (rejections > 0) {
        await wait(Math.min(DELAY_MS_MIN * 2 ** Math.min(rejections - 1, 30), DELAY_MS_MAX), signal)
      }
      known.lastMs = nowMs()
      return rejection.isRetryable && !signal.aborted ? undefined : rejection
    },
    add(digest, rejection) {
      const rejections = versions.get(digest)?.rejections ?? 1
      versions.delete(digest) // so that it is the newest
      versions.set(digest, { rejection, rejections, lastMs: nowMs() })
      const [oldest] = versions.keys()
      if (versions.size > VERSIONS_MAX && oldest !== undefined) versions.delete(oldest)
    },
  }
}
