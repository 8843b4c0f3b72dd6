// The limiters: those that are connected, and those that have left recently. A limiter that
// reconnects soon changes no number, and one that rejects the rules stays known as such.

/** A connected limiter. */
interface CountedLimiter {
  /** The number of the version that it applies; 0: none. */
  readonly version: number
  /** Whether it rejected the version that it was sent last. */
  readonly isRejecting: boolean
}

/** Counts limiters. */
export interface LimiterCount {
  /** Records which are connected. */
  readonly observe: (limiters: readonly CountedLimiter[], nowMs: number) => void
  /** The highest number of limiters within the last LIMITER_RECONNECT_MS. */
  readonly total: (nowMs: number) => number
  /** The highest number within the last LIMITER_ABSENCE_MS of those with this version or newer. */
  readonly active: (since: number, nowMs: number) => number
  /** Whether one with an older version rejected rules within the last LIMITER_RECONNECT_MS. */
  readonly isRejecting: (since: number, nowMs: number) => boolean
  /** When a number can decrease; `undefined`: only after another change. */
  readonly nextChangeMs: (nowMs: number) => number | undefined
}

/** A limiter reconnects within this time: its back-off is at most 60 s by default. */
export const LIMITER_RECONNECT_MS = 90_000
/** A limiter that disconnects counts as active for this time, or up to BUCKET_MS longer. */
export const LIMITER_ABSENCE_MS = 10_000
const BUCKET_MS = 1000

/** The versions of the limiters, from the newest to the oldest. */
type Versions = readonly number[]

/** Creates a count without limiters. */
export function createLimiterCount(): LimiterCount {
  /** Earlier numbers, each with the end of its effect: the numbers decrease. */
  let earlier: { readonly count: number; readonly untilMs: number }[] = []
  /** Earlier versions by time: fewer than LIMITER_ABSENCE_MS / BUCKET_MS + 2 buckets. */
  let buckets: { readonly startMs: number; versions: Versions }[] = []
  let connected: Versions = []
  /** The oldest version of a limiter that rejected rules. */
  let rejection = { version: Infinity, untilMs: -Infinity }
  const recent = (nowMs: number) => buckets.filter((bucket) => endOf(bucket) > nowMs)
  const keep = (versions: Versions, nowMs: number) => {
    buckets = recent(nowMs)
    const last = buckets.at(-1)
    if (last !== undefined && nowMs - last.startMs < BUCKET_MS)
      last.versions = highest(last.versions, versions)
    else buckets.push({ startMs: nowMs, versions })
  }
  return {
    observe(limiters, nowMs) {
      const next = limiters.map(({ version }) => version).sort((a, b) => b - a)
      const left = { count: connected.length, untilMs: nowMs + LIMITER_RECONNECT_MS }
      const kept = earlier.filter(
        ({ count, untilMs }) => untilMs > nowMs && count > connected.length,
      )
      earlier = [...kept, left].filter(({ count }) => count > next.length)
      if (connected.some((version, at) => version > (next[at] ?? -1))) keep(connected, nowMs)
      connected = next
      const rejecting = limiters.filter(({ isRejecting }) => isRejecting)
      if (rejecting.length === 0) return
      const known = rejection.untilMs > nowMs ? rejection.version : Infinity
      const version = Math.min(known, ...rejecting.map((limiter) => limiter.version))
      rejection = { version, untilMs: nowMs + LIMITER_RECONNECT_MS }
    },
    total: (nowMs) => earlier.find(({ untilMs }) => untilMs > nowMs)?.count ?? connected.length,
    active: (since, nowMs) =>
      recent(nowMs)
        .reduce((versions, bucket) => highest(versions, bucket.versions), connected)
        .filter((version) => version >= since).length,
    isRejecting: (since, nowMs) => rejection.untilMs > nowMs && rejection.version < since,
    nextChangeMs(nowMs) {
      const ends = [earlier[0]?.untilMs, ...buckets.slice(0, 1).map(endOf), rejection.untilMs]
      return earliestAfter(nowMs, ends)
    },
  }
}

/** The earliest of the times that are after `nowMs`; `undefined`: none. */
export function earliestAfter(
  nowMs: number,
  times: readonly (number | undefined)[],
): number | undefined {
  const later = times.filter((ms) => ms !== undefined && ms > nowMs) as number[]
  return later.length === 0 ? undefined : Math.min(...later)
}

function endOf({ startMs }: { readonly startMs: number }): number {
  return startMs + LIMITER_ABSENCE_MS + BUCKET_MS
}

/** Has as many versions from any number on as the one of the two that has more. */
function highest(one: Versions, other: Versions): Versions {
  const [longer, shorter] = one.length < other.length ? [other, one] : [one, other]
  return longer.map((version, at) => Math.max(version, shorter[at] ?? 0))
}
