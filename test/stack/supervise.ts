// Watches the components of a running stack: reports each that dies, and restarts them on demand.
import { isAlive, type Component } from './component.ts'

const LOOK_EVERY_MS = 500

/** Watches until it is stopped. */
export interface Supervisor {
  /** Restarts every dead component, one after the other; concurrent calls share one run. */
  restartDead(): Promise<void>
  /** Stops watching; resolves when no restart is in progress. */
  stop(): Promise<void>
}

/** Starts to watch; the reports name `how`, the command that restarts dead components. */
export function supervise(given: {
  readonly parts: readonly Pick<Component, 'name' | 'pid' | 'restart'>[]
  readonly how: string
  readonly say: (line: string) => void
}): Supervisor {
  const { parts, how, say } = given
  const reported = new Set<string>()
  let isStopped = false
  let restarting: Promise<void> | undefined
  const restartAll = async () => {
    for (const { name, pid, restart } of parts) {
      if (isStopped || isAlive(pid())) continue
      say(`restarting ${name}`)
      try {
        await restart()
        say(`${name} restarted, pid ${String(pid())}`)
        reported.delete(name)
      } catch (error) {
        say(
          `${name} cannot be restarted: ${error instanceof Error ? error.message : String(error)}`,
        )
      }
    }
  }
  const looking = setInterval(() => {
    if (restarting !== undefined) return // a component is down on purpose
    for (const { name, pid } of parts) {
      if (reported.has(name) || isAlive(pid())) continue
      reported.add(name)
      say(`${name} (pid ${String(pid())}) has died; to restart it: ${how}`)
    }
  }, LOOK_EVERY_MS)
  return {
    restartDead() {
      restarting ??= restartAll().finally(() => {
        restarting = undefined
      })
      return restarting
    },
    async stop() {
      isStopped = true
      clearInterval(looking)
      await restarting
    },
  }
}
