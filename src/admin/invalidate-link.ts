// Invalidates a link in the shared cache after a change in the store, and retries until the cache
// confirms it. Never writes values into the cache: a value could overwrite a later change, an
// invalidation cannot.
import type { LinkCache } from '../links/link-cache.ts'
import { type Clock, pause, type Pause } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'

/** Invalidates links in the shared cache. */
export interface CacheInvalidator {
  /**
   * Invalidates once; if the cache does not confirm it, retries in the background. Resolves after
   * the first call, and never rejects.
   */
  invalidate(code: string): Promise<void>
  /**
   * Invalidates twice, CONFIRM_DELAY_MS apart, because a failover may lose the first invalidation.
   * Resolves to whether the cache confirmed both, each within CONFIRM_MS_MAX; if not, retries in
   * the background. Never rejects.
   */
  confirm(code: string): Promise<boolean>
  /** Retries unconfirmed invalidations a last time, and stops. */
  stop(): Promise<void>
}

/** Dependencies of the invalidator. */
export interface InvalidateDeps {
  readonly cache: Pick<LinkCache, 'invalidate'>
  readonly monotonicMs: Clock
  readonly metrics: {
    readonly linkCacheInvalidationsQueued: Pick<Metrics['linkCacheInvalidationsQueued'], 'set'>
    readonly linkCacheInvalidationsDropped: Pick<Metrics['linkCacheInvalidationsDropped'], 'inc'>
  }
  /** Called for defects of the cache; a StoreError (no reply) is not a defect. */
  readonly onError: (error: unknown) => void
  /** Waits before a retry; tests with a simulated clock replace it. */
  readonly pause?: Pause
}

/** Delay of the second invalidation of `confirm`. */
export const CONFIRM_DELAY_MS = 1000

/** How long `confirm` waits for the cache to confirm each of its two invalidations. */
export const CONFIRM_MS_MAX = 1000

/** Bound of the retry queue; beyond it the oldest codes are dropped: their entries expire first. */
export const QUEUED_MAX = 10_000

/** The first and the longest delay between two retries. */
const RETRY_MS = 20
const RETRY_MS_MAX = 1000
/** Codes that are retried in parallel while the cache responds. */
const PARALLEL_MAX = 100

/** Creates an invalidator with an empty retry queue. */
export function createCacheInvalidator(deps: InvalidateDeps): CacheInvalidator {
  const stopping = new AbortController()
  const wait = (ms: number) => (deps.pause ?? pause)(ms, stopping.signal)
  const tryInvalidate = async (code: string): Promise<boolean> => {
    try {
      await deps.cache.invalidate(code)
      return true
    } catch (error) {
      if (!(error instanceof StoreError)) deps.onError(error)
      return false
    }
  }
  const queue = createRetryQueue({ ...deps, tryInvalidate, wait, signal: stopping.signal })
  const confirmOnce = async (code: string): Promise<boolean> => {
    const deadlineMs = deps.monotonicMs() + CONFIRM_MS_MAX
    for (let failures = 0; !(await tryInvalidate(code)); failures++) {
      if (deps.monotonicMs() >= deadlineMs || stopping.signal.aborted) return false
      await wait(retryDelayMs(failures))
    }
    return true
  }
  const confirmTwice = async (code: string): Promise<boolean> => {
    if (!(await confirmOnce(code))) return false
    await wait(CONFIRM_DELAY_MS)
    return !stopping.signal.aborted && confirmOnce(code)
  }
  return {
    async invalidate(code) {
      if (!(await tryInvalidate(code))) queue.add(code)
    },
    async confirm(code) {
      const isConfirmed = await confirmTwice(code)
      if (!isConfirmed) queue.add(code)
      return isConfirmed
    },
    async stop() {
      stopping.abort()
      await queue.settled()
    },
  }
}

function createRetryQueue(
  given: InvalidateDeps & {
    tryInvalidate: (code: string) => Promise<boolean>
    wait: (ms: number) => Promise<void>
    signal: AbortSignal
  },
) {
  const { tryInvalidate, wait, metrics, signal } = given
  const codes = new Set<string>()
  let retrying: Promise<void> | undefined
  const updateMetric = () => {
    metrics.linkCacheInvalidationsQueued.set(codes.size)
  }
  const enqueue = (code: string) => {
    codes.add(code)
    const [oldest] = codes
    if (codes.size <= QUEUED_MAX || oldest === undefined) return
    codes.delete(oldest)
    metrics.linkCacheInvalidationsDropped.inc(1)
  }
  /** Retries the oldest codes in parallel; resolves to whether any was confirmed. */
  const retryBatch = async (codesMax: number): Promise<boolean> => {
    const batch = [...codes].slice(0, codesMax)
    // Dequeued first: a change during the calls must be invalidated separately.
    for (const code of batch) codes.delete(code)
    const confirmed = await Promise.all(batch.map(tryInvalidate))
    for (const [i, code] of batch.entries()) if (confirmed[i] !== true) enqueue(code)
    updateMetric()
    return confirmed.includes(true)
  }
  const retry = async () => {
    try {
      let failures = 0
      while (codes.size > 0 && !signal.aborted) {
        await wait(retryDelayMs(failures))
        failures = (await retryBatch(failures === 0 ? PARALLEL_MAX : 1)) ? 0 : failures + 1
      }
      if (codes.size > 0) await retryBatch(QUEUED_MAX)
    } finally {
      retrying = undefined
    }
  }
  return {
    add(code: string) {
      enqueue(code)
      updateMetric()
      retrying ??= retry()
    },
    settled: () => retrying,
  }
}

/** The back-off in milliseconds after this many consecutive failures. */
function retryDelayMs(failures: number): number {
  return Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX)
}
