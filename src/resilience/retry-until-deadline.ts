// Retries a store call until it succeeds, the process stops or the deadline of a request passes.
// Pauses grow and are random, so that clients that contend for one row do not collide on every
// retry.
import { type Clock, pause, type Pause } from './deadline.ts'
import { type FailedOutcome, StoreError } from './store-error.ts'

/** Dependencies of a retry. */
export interface RetryDeps {
  /** Waits before a retry; tests with a simulated clock replace it. */
  readonly pause?: Pause
  /** From 0 to 1. @default Math.random */
  readonly random?: () => number
}

/** The result of a store call, or `failed` after a StoreError; rethrows other errors. */
export async function resultOrFailed<T>(
  call: Promise<T>,
  onFailure?: (error: StoreError) => void,
): Promise<T | 'failed'> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    onFailure?.(error)
    return 'failed'
  }
}

/** The result of a store call, or the outcome of its StoreError; rethrows other errors. */
export async function resultOrOutcome<T>(call: Promise<T>): Promise<T | FailedOutcome> {
  try {
    return await call
  } catch (error) {
    if (error instanceof StoreError) return error.outcome
    throw error
  }
}

/** Bounds of the pauses: the first one is at most `firstMs`, and each failure doubles this. */
interface PauseBounds {
  readonly firstMs: number
  readonly maxMs: number
}

const PAUSES: PauseBounds = { firstMs: 20, maxMs: 1000 }
/** The pauses of a request: contention for one row usually takes a few tens of ms. */
const REQUEST_PAUSES: PauseBounds = { firstMs: 20, maxMs: 320 }

function backOffMs(
  failures: number,
  { random = Math.random }: RetryDeps,
  { firstMs, maxMs }: PauseBounds,
): number {
  return Math.max(1, Math.round(Math.min(firstMs * 2 ** failures, maxMs) * random()))
}

/** A random factor from 0.5 to 1, for pauses that must not be much shorter than their bound. */
export const fromHalf = (): number => 0.5 + Math.random() / 2

/** The dependencies of retries that last until the process stops. */
interface UntilStopped extends RetryDeps {
  readonly signal: AbortSignal
  /** @default from 20 ms to 1 s */
  readonly pauses?: PauseBounds
  /** Called with each StoreError. */
  readonly onFailure?: (error: StoreError) => void
}

/** Creates a function that waits before each retry, until `signal` aborts. */
export function createBackOff(deps: UntilStopped): () => Promise<void> {
  let failures = 0
  return () =>
    (deps.pause ?? pause)(backOffMs(failures++, deps, deps.pauses ?? PAUSES), deps.signal)
}

/**
 * Retries, with pauses, until `call` returns a value other than `failed`; returns `stopped` when
 * `signal` aborts. Rethrows errors other than StoreError.
 */
export async function retryUntilStopped<T>(
  deps: UntilStopped,
  call: () => Promise<T | 'failed'>,
): Promise<T | 'stopped'> {
  const backOff = createBackOff(deps)
  while (!deps.signal.aborted) {
    const result = await resultOrFailed(call(), deps.onFailure)
    if (result !== 'failed') return result
    await backOff()
  }
  return 'stopped'
}

/** The retries of one step of a request. */
export interface Retries {
  /** Waits before a retry; `false` once the deadline has passed. */
  wait(): Promise<boolean>
  /**
   * Retries until `call` succeeds. Returns `failed` at the deadline, or immediately if the
   * outcome is `not-done`: a retry would fail as well, and delay the response.
   */
  run<T>(call: () => Promise<T>): Promise<T | 'failed'>
}

/** Creates the retries of a step; they stop at `deadlineMs`, after a store call in flight. */
export function createRetries(
  deadlineMs: number,
  deps: RetryDeps & { readonly monotonicMs: Clock },
): Retries {
  let failures = 0
  const wait = async () => {
    const leftMs = deadlineMs - deps.monotonicMs()
    if (leftMs <= 0) return false
    const backOff = backOffMs(failures++, deps, REQUEST_PAUSES)
    await (deps.pause ?? pause)(Math.min(backOff, leftMs))
    return deps.monotonicMs() < deadlineMs
  }
  return {
    wait,
    async run(call) {
      do {
        const outcome = await resultOrOutcome(call())
        if (outcome === 'not-done') return 'failed'
        if (outcome !== 'unknown') return outcome
      } while (await wait())
      return 'failed'
    },
  }
}
