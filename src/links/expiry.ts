// The expiry of links. Stores and caches may return expired links: their callers compare
// `expiresAtMs` with the clock. Deletion is only cleanup.

/** Maximum lifetime of a link, in days. */
export const TTL_DAYS_MAX = 3650

const DAY_MS = 86_400_000

/** How long the record of an expired link is kept, so that its code cannot be claimed too soon. */
export const QUARANTINE_MS = 31 * DAY_MS

/** The expiry time of a link; `null` = never. */
export function expiryOf(createdAtMs: number, ttlDays: number | undefined): number | null {
  return ttlDays === undefined ? null : createdAtMs + ttlDays * DAY_MS
}

/** Whether a link that expires at `expiresAtMs` has expired. */
export function isExpired(expiresAtMs: number | null, nowMs: number): boolean {
  return expiresAtMs !== null && expiresAtMs <= nowMs
}
