// Workers that take keys from a queue and reconcile them. Each reconcile has a deadline, and failed
// keys are requeued. A defect fails only the reconcile in which it occurs.
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { KubeError } from './kube-error.ts'
import { createDeadline, type Scheduler } from './scheduler.ts'
import type { WorkQueue } from './work-queue.ts'

/** The result of a reconcile. */
export interface ReconcileResult {
  /** The delay before the next reconcile if nothing changes; absent: no further reconcile. */
  readonly requeueAfterMs?: number | undefined
}

/** A reconcile failed, and a retry cannot succeed until the object changes. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError'
}

/** Options of the workers. */
export interface WorkersOptions {
  /** Name of the controller in metrics. */
  readonly name: string
  readonly queue: Pick<WorkQueue, 'take' | 'done' | 'resetFailures' | 'addAfter' | 'addFailed'>
  /** Number of concurrent reconciles. */
  readonly workers: number
  /** Reconciles one key; idempotent, and returns soon after `signal` aborts. */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>
  /** Whether an error is operational, not a defect. @default KubeError */
  readonly isOperationalError?: (error: unknown) => boolean
  readonly scheduler: Scheduler
  readonly metrics: Pick<
    Metrics,
    | 'reconciles'
    | 'reconcileErrors'
    | 'terminalReconcileErrors'
    | 'reconcilePanics'
    | 'reconcileSeconds'
    | 'reconcilesMax'
    | 'activeWorkers'
  >
  readonly log: Pick<Log, 'error' | 'warn' | 'debug'>
}

const RECONCILE_MS_MAX = 60_000

/** Runs workers until the queue shuts down and all have stopped. `signal` aborts reconciles. */
export async function runWorkers(options: WorkersOptions, signal: AbortSignal): Promise<void> {
  const { name: controller, queue, workers, metrics } = options
  metrics.reconcilesMax.set({ controller }, workers)
  const work = async () => {
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      metrics.activeWorkers.inc({ controller })
      try {
        await reconcileOne(options, key, signal)
      } finally {
        metrics.activeWorkers.dec({ controller })
        queue.done(key)
      }
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
}

async function reconcileOne(
  options: WorkersOptions,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const { name: controller, queue, scheduler, metrics } = options
  const startedMs = scheduler.nowMs()
  const deadline = createDeadline(scheduler, RECONCILE_MS_MAX, signal)
  const count = (result: string) => {
    metrics.reconciles.inc({ controller, result })
  }
  try {
    const { requeueAfterMs } = await options.reconcile(key, deadline.signal)
    queue.resetFailures(key)
    count(requeueAfterMs === undefined ? 'success' : 'requeue_after')
    if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs)
  } catch (error) {
    if (signal.aborted) return // stopping, or lost leadership: another replica reconciles the key
    count('error')
    metrics.reconcileErrors.inc({ controller })
    handleError(options, key, error)
  } finally {
    deadline.clear()
    metrics.reconcileSeconds.labels(controller).observe((scheduler.nowMs() - startedMs) / 1000)
  }
}

function handleError(options: WorkersOptions, key: string, error: unknown): void {
  const { name: controller, queue, metrics, log } = options
  const { isOperationalError = (err) => err instanceof KubeError } = options
  if (error instanceof TerminalError) {
    metrics.terminalReconcileErrors.inc({ controller })
    queue.resetFailures(key)
    log.error({ err: error, key }, 'reconcile failed: not retried until the object changes')
    return
  }
  if (isOperationalError(error)) {
    log.warn({ err: error, key }, 'reconcile failed')
  } else {
    metrics.reconcilePanics.inc({ controller })
    log.error({ err: error, key }, 'reconcile failed: unexpected error')
  }
  queue.addFailed(key)
}
