// Asks a store until it answers: for what has to be known before anything else can be done.
import { pause, type Pause } from '../process/deadline.ts'
import { answerOf, PAUSE_MS } from './claim-code.ts'

const PAUSE_MS_MAX = 1000

/** What the store answers in the end, or `stopped` once `signal` aborts. Waits between tries. */
export async function untilAnswered<T>(
  deps: {
    readonly signal: AbortSignal
    /** How to wait; tests, whose clock is their own, bring another. */
    readonly pause?: Pause
  },
  ask: () => Promise<T>,
): Promise<T | 'stopped'> {
  let pauseMs = PAUSE_MS
  while (!deps.signal.aborted) {
    const answer = await answerOf(ask())
    if (answer !== 'failed') return answer
    await (deps.pause ?? pause)(pauseMs, deps.signal)
    pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)
  }
  return 'stopped'
}
