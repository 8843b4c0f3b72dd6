// What all long-running processes share: log, metrics, health and cleanups.
import { collectProcessMetrics, createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { createLog } from '../telemetry/log.ts'
import { createHealth, type Health } from './health.ts'
import { releaseStartMemory } from './release-start-memory.ts'
import { type Stop, stopInTurn } from './stop.ts'
import { version } from './version.ts'

/** A process that is starting. */
export interface Process {
  readonly log: ReturnType<typeof createLog>
  readonly metrics: Metrics
  readonly health: Health
  /** Cleanups to run on stop, the last one first. */
  readonly cleanups: Stop[]
}

/**
 * Opens the log, the metrics and the health, which reports `dependencies`. Call it once all modules
 * are loaded and before the process serves: it first releases the memory that loading them took.
 */
export function openProcess(
  role: string,
  config: { readonly LOG_LEVEL: string },
  dependencies: readonly string[],
): Process {
  releaseStartMemory()
  const metrics = createMetrics()
  collectProcessMetrics(metrics)
  metrics.buildInfo.set({ version, node: process.version, role }, 1)
  const log = createLog({ role, level: config.LOG_LEVEL })
  return { log, metrics, health: createHealth(dependencies), cleanups: [] }
}

/** Runs `start`; the returned `stop` runs the cleanups. If `start` fails, they run immediately. */
export async function startProcess(
  { log, health, cleanups }: Process,
  start: () => Promise<void>,
): Promise<{ readonly stop: Stop }> {
  const cleanUp = () => stopInTurn(cleanups.splice(0).reverse())
  try {
    await start()
  } catch (error) {
    await cleanUp().catch((err: unknown) => {
      log.error({ err }, 'component did not stop')
    })
    throw error
  }
  return {
    async stop() {
      health.markDraining()
      log.info('draining')
      await cleanUp()
      log.info('stopped')
    },
  }
}
