// Tells health and the log how the database fares: one line when it fails, one when it is back,
// however often it is asked between.
import type { Health } from '../../process/health.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Tightened } from './private-files.ts'

/** A side of the database: the writing thread, or the reader of the main one. */
type Side = 'write' | 'read'

/** Told how the database fares. */
export interface WatchedBy {
  /** Something was written, or was read, as asked. */
  worked(side: Side): void
  /** It was not; `reason` in SQLite's words. */
  failed(side: Side, reason: string): void
  /** The writing thread has ended unasked: nothing can be written any more. */
  ended(error: Error): void
  /** Others could read this file or folder of the database. */
  tightened(found: Tightened): void
}

/** Who is told by default: nobody. */
export const unwatched: WatchedBy = {
  worked: () => undefined,
  failed: () => undefined,
  ended: () => undefined,
  tightened: () => undefined,
}

/** A watch, and what it has seen. */
export interface StoreWatch extends WatchedBy {
  /** Whether a side has failed and has not worked since. */
  isDown(): boolean
}

/** Starts watching. `onEnded` is to end the process: a restart heals, and nothing else does. */
export function createStoreWatch(deps: {
  readonly health: Pick<Health, 'note'>
  readonly log: Pick<Log, 'error' | 'warn' | 'info'>
  readonly onEnded: (error: Error) => void
}): StoreWatch {
  const { health, log } = deps
  const down = new Set<Side>()
  return {
    worked(side) {
      if (!down.delete(side) || down.size > 0) return
      health.note('store', 'up')
      log.info('the store is back')
    },
    failed(side, reason) {
      const wasUp = down.size === 0
      down.add(side)
      if (!wasUp) return
      health.note('store', 'down')
      log.error({ side, reason }, 'the store fails')
    },
    ended: deps.onEnded,
    tightened(found) {
      if (found.reason === undefined) log.warn(found, 'access by others removed from DATA_DIR')
      else log.warn(found, 'cannot remove access by others from DATA_DIR')
    },
    isDown: () => down.size > 0,
  }
}
