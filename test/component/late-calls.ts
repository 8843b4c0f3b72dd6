// Judges how long the calls of a limiter took while its store did not answer.

/** Five times the deadline that the limiter keeps for its store. */
const CALL_MS_MAX = 5 * 15

/**
 * How long each late one took of calls that one caller made after one another, but for the first
 * late one: a pause of the machine holds up one of them. Where the deadline is not kept, five are
 * late before the store is left alone. `pauseMs` is how long the caller was held up itself.
 */
export function lateCalls(tookMs: readonly number[], pauseMs = 0): readonly number[] {
  return tookMs.filter((ms) => ms > CALL_MS_MAX + pauseMs).slice(1)
}
