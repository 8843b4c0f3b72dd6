// Reports the state of the database to health and the log: one line when it becomes unavailable and
// one when it recovers, for any number of calls between them.
import type { Health } from '../../process/health.ts'
import type { Log } from '../../telemetry/log.ts'
import type { RestrictedPath } from './private-files.ts'

/** A side of the database: the writer thread, or the reader of the main thread. */
type Side = 'write' | 'read'

/** Observes the results of database calls. */
export interface StoreObserver {
  /** A write or read succeeded. */
  succeeded(side: Side): void
  /** A write or read failed; `reason` is SQLite's message. */
  failed(side: Side, reason: string): void
  /** The writer thread has stopped unexpectedly: all later writes fail. */
  writerStopped(error: Error): void
  /** Other users could access this file or folder of the database. */
  restricted(found: RestrictedPath): void
}

/** The default: ignores everything. */
export const noObserver: StoreObserver = {
  succeeded: () => undefined,
  failed: () => undefined,
  writerStopped: () => undefined,
  restricted: () => undefined,
}

/** An observer that keeps the observed state. */
export interface StoreWatch extends StoreObserver {
  /** Whether a side has failed and not succeeded since. */
  isDown(): boolean
}

/** Starts to watch. `onWriterStopped` must exit the process: only a restart can recover. */
export function createStoreWatch(deps: {
  readonly health: Pick<Health, 'note'>
  readonly log: Pick<Log, 'error' | 'warn' | 'info'>
  readonly onWriterStopped: (error: Error) => void
}): StoreWatch {
  const { health, log } = deps
  const down = new Set<Side>()
  return {
    succeeded(side) {
      if (!down.delete(side) || down.size > 0) return
      health.note('store', 'up')
      log.info('store available')
    },
    failed(side, reason) {
      const wasUp = down.size === 0
      down.add(side)
      if (!wasUp) return
      health.note('store', 'down')
      log.error({ side, reason }, 'store unavailable')
    },
    writerStopped: deps.onWriterStopped,
    restricted(found) {
      if (found.reason === undefined) log.warn(found, 'access by others removed from DATA_DIR')
      else log.warn(found, 'cannot remove access by others from DATA_DIR')
    },
    isDown: () => down.size > 0,
  }
}
