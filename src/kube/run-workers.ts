// Workers that take keys from a queue and reconcile them, each within its time; what fails is put
// back, and a defect of ours ends nothing but its own reconcile.
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { KubeError } from './kube-error.ts'
import { deadlineOn, type Scheduler } from './scheduler.ts'
import type { WorkQueue } from './work-queue.ts'

/** What a reconcile came to. */
export interface Reconciled {
  /** When to look again though nothing changed; never if not given. */
  readonly requeueAfterMs?: number | undefined
}

/** Trying again would not help until something changes. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError'
}

/** What workers need. */
export interface WorkersOptions {
  /** Name of the controller in metrics. */
  readonly name: string
  readonly queue: Pick<WorkQueue, 'take' | 'done' | 'forget' | 'addAfter' | 'addFailed'>
  readonly workers: number
  /** Safe to repeat; ends soon after `signal` aborts. */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Reconciled>
  /** Whether an error is an operating fault, not a defect. @default those of calls */
  readonly isFault?: (error: unknown) => boolean
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

/** Runs workers until the queue ends; resolves when the last one has. `signal` hurries them. */
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
  const begunMs = scheduler.nowMs()
  const deadline = deadlineOn(scheduler, RECONCILE_MS_MAX, signal)
  const count = (result: string) => {
    metrics.reconciles.inc({ controller, result })
  }
  try {
    const { requeueAfterMs } = await options.reconcile(key, deadline.signal)
    queue.forget(key)
    count(requeueAfterMs === undefined ? 'success' : 'requeue_after')
    if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs)
  } catch (error) {
    if (signal.aborted) return // the process ends, or leads no more: another goes on
    count('error')
    metrics.reconcileErrors.inc({ controller })
    judge(options, key, error)
  } finally {
    deadline.end()
    metrics.reconcileSeconds.labels(controller).observe((scheduler.nowMs() - begunMs) / 1000)
  }
}

function judge(options: WorkersOptions, key: string, error: unknown): void {
  const { name: controller, queue, metrics, log, isFault = isKubeError } = options
  if (error instanceof TerminalError) {
    metrics.terminalReconcileErrors.inc({ controller })
    queue.forget(key)
    log.error({ err: error, key }, 'a reconcile cannot succeed until something changes')
    return
  }
  if (isFault(error)) {
    log.warn({ err: error, key }, 'a reconcile failed')
  } else {
    metrics.reconcilePanics.inc({ controller })
    log.error({ err: error, key }, 'a reconcile ended by a defect')
  }
  queue.addFailed(key)
}

function isKubeError(error: unknown): boolean {
  return error instanceof KubeError
}
