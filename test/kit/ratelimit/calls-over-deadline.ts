// Checks the durations of calls to a limiter while its store is unavailable.

/** Five times the limiter's deadline for its store. */
const CALL_MS_MAX = 5 * 15

/**
 * The durations that exceed the deadline, among consecutive calls of one caller, without the first
 * one, which a pause of the machine may cause. A limiter that misses its deadline does so five
 * times before its circuit breaker opens.
 */
export function callsOverDeadline(tookMs: readonly number[]): readonly number[] {
  return tookMs.filter((ms) => ms > CALL_MS_MAX).slice(1)
}
