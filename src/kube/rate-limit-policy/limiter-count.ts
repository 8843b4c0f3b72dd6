// Counts the limiters that are connected or have disconnected recently: a limiter that disconnects
// for a short time changes no number. In the meantime, its rejection of the rules counts, too.

/** A connected limiter. */
interface CountedLimiter {
  /** The number of the version that it applies; 0: none. */
  readonly version: number
  /** The number of the last sent version, if the limiter rejected it; else 0. */
  readonly rejected: number
}

/** Counts limiters. */
export interface LimiterCount {
  /** Records the connected limiters. */
  readonly observe: (limiters: readonly CountedLimiter[], nowMs: number) => void
  /** Records that a limiter with this version stops: it does not reconnect. */
  readonly leave: (version: number) => void
  /** The highest number of limiters within the last LIMITER_RECONNECT_MS. */
  readonly total: (nowMs: number) => number
  /** The highest number of limiters with this version or newer in the last LIMITER_ABSENCE_MS. */
  readonly active: (since: number, nowMs: number) => number
  /** Whether a limiter with an older version recently rejected this version or a newer one. */
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

interface Rejection {
  /** The oldest version that a rejecting limiter applies. */
  readonly version: number
  /** The newest version that was rejected. */
  readonly rejected: number
  readonly untilMs: number
}

const noRejection: Rejection = { version: Infinity, rejected: 0, untilMs: -Infinity }

/** Creates a count without limiters. */
export function createLimiterCount(): LimiterCount {
  /** Earlier numbers, in descending order and above the current one, and until when they count. */
  let earlier: { readonly count: number; readonly untilMs: number }[] = []
  /** Earlier versions by time: fewer than LIMITER_ABSENCE_MS / BUCKET_MS + 2 buckets. */
  let buckets: { readonly startMs: number; versions: Versions }[] = []
  let connected: Versions = []
  let rejection = noRejection
  const recent = (nowMs: number) => buckets.filter((bucket) => endOf(bucket) > nowMs)
  const keep = (versions: Versions, nowMs: number) => {
    buckets = recent(nowMs)
    const last = buckets.at(-1)
    if (last !== undefined && nowMs - last.startMs < BUCKET_MS)
      last.versions = elementwiseMax(last.versions, versions)
    else buckets.push({ startMs: nowMs, versions })
  }
  const total = (nowMs: number) =>
    earlier.find(({ untilMs }) => untilMs > nowMs)?.count ?? connected.length
  const active = (since: number, nowMs: number) =>
    recent(nowMs)
      .reduce((versions, bucket) => elementwiseMax(versions, bucket.versions), connected)
      .filter((version) => version >= since).length
  return {
    observe(limiters, nowMs) {
      const next = limiters.map(({ version }) => version).sort((a, b) => b - a)
      const left = { count: connected.length, untilMs: nowMs + LIMITER_RECONNECT_MS }
      earlier = [...earlier, left].filter(({ count }) => count > next.length)
      if (connected.some((version, at) => version > (next[at] ?? -1))) keep(connected, nowMs)
      connected = next
      const rejecting = limiters.filter(({ rejected }) => rejected > 0)
      if (rejecting.length > 0) rejection = mergeRejections(rejection, rejecting, nowMs)
      else if (active(rejection.rejected, nowMs) >= total(nowMs)) rejection = noRejection
    },
    leave(version) {
      const at = connected.indexOf(version)
      if (at === -1) return
      connected = connected.toSpliced(at, 1)
      earlier = earlier.map(({ count, untilMs }) => ({ count: count - 1, untilMs }))
      // The limiter had one of these versions: without the newest, `active` is never too high.
      buckets = buckets.map(({ startMs, versions }) => ({ startMs, versions: versions.slice(1) }))
    },
    total,
    active,
    isRejecting: (since, nowMs) => {
      const { version, rejected, untilMs } = rejection
      return untilMs > nowMs && version < since && since <= rejected
    },
    nextChangeMs(nowMs) {
      const numbers = earlier.map(({ untilMs }) => untilMs)
      return earliestAfter(nowMs, [...numbers, ...buckets.map(endOf), rejection.untilMs])
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

/** The maximum of two descending lists, entry by entry. */
function elementwiseMax(one: Versions, other: Versions): Versions {
  const [longer, shorter] = one.length < other.length ? [other, one] : [one, other]
  return longer.map((version, at) => Math.max(version, shorter[at] ?? 0))
}

function mergeRejections(
  before: Rejection,
  rejecting: readonly CountedLimiter[],
  nowMs: number,
): Rejection {
  const known = before.untilMs > nowMs ? before : noRejection
  return {
    version: Math.min(known.version, ...rejecting.map(({ version }) => version)),
    rejected: Math.max(known.rejected, ...rejecting.map(({ rejected }) => rejected)),
    untilMs: nowMs + LIMITER_RECONNECT_MS,
  }
}
