// Runs the controllers of a process: all of them watch, and lead once the process has acquired
// the Lease. A defect, or lost leadership, exits the process.
import type { Process } from '../process/open-process.ts'
import { OperatorError } from '../process/role.ts'
import { runInBackground } from '../resilience/background.ts'
import type { Election } from './lease.ts'
import { untilAborted } from './scheduler.ts'

/** The controller of one kind of object. */
export interface Controller {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly watch: (signal: AbortSignal) => Promise<void>
  /** Works as the leader until `signal` aborts. Rejects only on a defect. */
  readonly lead: (signal: AbortSignal) => Promise<void>
  /** Updates the metrics that are sampled. */
  readonly updateMetrics: () => void
}

const METRICS_EVERY_MS = 15_000

/** Starts the controllers; the process acquires the Lease after `synced`. */
export function runControllers(
  { log, cleanups }: Pick<Process, 'log' | 'cleanups'>,
  given: {
    readonly controllers: readonly Controller[]
    readonly election: Election
    readonly synced: Promise<void>
  },
): void {
  const { controllers, election, synced } = given
  const watching = new AbortController()
  const leading = new AbortController()
  const exit = (err: unknown) => {
    log.fatal({ err }, 'controller failed: exiting')
    process.exit(1)
  }
  const watchTasks = controllers.map(({ watch }) => watch(watching.signal).catch(exit))
  const metricsTask = runInBackground({
    everyMs: METRICS_EVERY_MS,
    task: () => {
      for (const { updateMetrics } of controllers) updateMetrics()
      return Promise.resolve()
    },
    onError: exit,
  })
  const lead = async () => {
    await Promise.race([synced, untilAborted(leading.signal)])
    if (!(await election.acquire(leading.signal))) return
    const working = controllers.map((controller) => controller.lead(leading.signal).catch(exit))
    if ((await election.renew(leading.signal)) === 'lost')
      exit(new OperatorError('lost leadership: another replica may lead'))
    await Promise.all(working)
    await election.release()
  }
  const leadTask = lead().catch(exit)
  cleanups.push(
    async () => {
      watching.abort()
      await Promise.all(watchTasks)
    },
    () => metricsTask.stop(),
    async () => {
      leading.abort()
      await leadTask
    },
  )
}
