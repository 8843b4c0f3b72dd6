// Checks how long the calls to a limiter took while its store was unavailable.

/** Five times the limiter's deadline for its store. */
const CALL_MS_MAX = 5 * 15

/**
 * The durations of the calls that exceeded the deadline, among consecutive calls of one caller,
 * without the first one: a pause of the machine delays one call. A limiter that misses its deadline
 * exceeds it five times before its circuit breaker opens. `pauseMs` is the pause of the caller.
 */
export function callsOverDeadline(tookMs: readonly number[], pauseMs = 0): readonly number[] {
  return tookMs.filter((ms) => ms > CALL_MS_MAX + pauseMs).slice(1)
}
