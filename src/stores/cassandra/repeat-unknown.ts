// Repeats a change that states what it expects, while its outcome is unknown or another one came
// before it. Bounded in tries and in time.
import { pause, type Pause } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'

/** What one try came to: the answer, or that it is to be tried again. */
export type Tried<T> = { readonly done: T } | 'again'

const TRIES_MAX = 12
const TRYING_MS_MAX = 4000
const PAUSE_MS = 10
const PAUSE_MS_MAX = 320

/**
 * Runs `attempt` until it is done. Each attempt begins by reading serially, which decides what was
 * unknown. Throws StoreError: `not-done` only if no try may have changed anything.
 */
export async function repeatUnknown<T>(
  attempt: () => Promise<Tried<T>>,
  wait: Pause = pause,
): Promise<T> {
  const endMs = performance.now() + TRYING_MS_MAX
  let wasUnknown = false
  let last: StoreError | undefined
  for (let tries = 0; tries < TRIES_MAX && (tries === 0 || performance.now() < endMs); tries++) {
    if (tries > 0) await wait(Math.min(PAUSE_MS * 2 ** tries, PAUSE_MS_MAX) * jitter())
    try {
      const tried = await attempt()
      if (tried !== 'again') return tried.done
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (error.outcome === 'not-done' && !wasUnknown) throw error
      wasUnknown = true
      last = error
    }
  }
  throw new StoreError('Cassandra did not settle a change in time', {
    outcome: wasUnknown ? 'unknown' : 'not-done',
    cause: last,
  })
}

function jitter(): number {
  return 0.5 + Math.random() / 2
}
