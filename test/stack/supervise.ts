// Watches the components of a running stack: reports each that exits, and restarts them on request.
import { isAlive, type Component } from './component.ts'

const CHECK_EVERY_MS = 500

/** Watches until it is stopped. */
export interface Supervisor {
  /** Restarts every dead component, one after the other; concurrent calls share one run. */
  restartDead(): Promise<void>
  /** Stops watching; resolves when no restart is in progress. */
  stop(): Promise<void>
}

/** Starts to watch; each report names `restartCommand`, which restarts dead components. */
export function supervise(given: {
  readonly components: readonly Pick<Component, 'name' | 'pid' | 'restart'>[]
  readonly restartCommand: string
  readonly log: (line: string) => void
}): Supervisor {
  const { components, restartCommand, log } = given
  const reported = new Set<string>()
  let isStopped = false
  let restarting: Promise<void> | undefined
  const restartAll = async () => {
    for (const { name, pid, restart } of components) {
      if (isStopped || isAlive(pid())) continue
      log(`restarting ${name}`)
      try {
        await restart()
        log(`${name} restarted, pid ${String(pid())}`)
        reported.delete(name)
      } catch (error) {
        log(
          `${name} cannot be restarted: ${error instanceof Error ? error.message : String(error)}`,
        )
      }
    }
  }
  const timer = setInterval(() => {
    if (restarting !== undefined) return // a component is down on purpose
    for (const { name, pid } of components) {
      if (reported.has(name) || isAlive(pid())) continue
      reported.add(name)
      log(`${name} (pid ${String(pid())}) exited; to restart it: ${restartCommand}`)
    }
  }, CHECK_EVERY_MS)
  return {
    restartDead() {
      restarting ??= restartAll().finally(() => {
        restarting = undefined
      })
      return restarting
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      await restarting
    },
  }
}
