// When links expire. Every read in every tier compares `expiresAtMs` with the clock; deletion is
// only housekeeping.

/** The longest life of a link, in days. */
export const TTL_DAYS_MAX = 3650

const DAY_MS = 86_400_000

/** How long an expired link's record is kept, so that its code is not claimed again too soon. */
export const QUARANTINE_MS = 31 * DAY_MS

/** The time at which a link created now expires; `null` = never. */
export function expiryOf(createdAtMs: number, ttlDays: number | undefined): number | null {
  return ttlDays === undefined ? null : createdAtMs + ttlDays * DAY_MS
}

/** Whether a link that expires at `expiresAtMs` has expired. */
export function isExpired(expiresAtMs: number | null, nowMs: number): boolean {
  return expiresAtMs !== null && expiresAtMs <= nowMs
}
