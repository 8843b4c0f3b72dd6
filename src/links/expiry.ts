// When links end. `expiresAtMs` against the clock is the authority on every read, in every tier;
// deletion is only housekeeping.

/** The longest life of a link, in days. */
export const TTL_DAYS_MAX = 3650

const DAY_MS = 86_400_000

/** An expired link's record is kept this long, so that its code is not claimed again too soon. */
export const QUARANTINE_MS = 31 * DAY_MS

/** The instant at which a link created now ends; `null` = never. */
export function expiryOf(createdAtMs: number, ttlDays: number | undefined): number | null {
  return ttlDays === undefined ? null : createdAtMs + ttlDays * DAY_MS
}

/** Whether a link that ends at `expiresAtMs` has ended. */
export function isExpired(expiresAtMs: number | null, nowMs: number): boolean {
  return expiresAtMs !== null && expiresAtMs <= nowMs
}
