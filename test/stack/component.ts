// One process of the stack: it can be killed, paused, stopped, and restarted on the same ports.
import { waitFor } from '../kit/wait-for.ts'

/**
 * Wrapper command for a process: it is killed when our process dies, and does not receive the
 * Ctrl-C of the terminal.
 */
export const DIE_WITH_PARENT: readonly string[] = ['setsid', 'setpriv', '--pdeathsig', 'KILL']

const GONE_MS_MAX = 30_000

/** A process of the stack. */
export interface Component {
  /** Such as `redirect-1`. */
  readonly name: string
  /** Its addresses, to print. */
  readonly where: string
  readonly pid: () => number
  /** Kills it (SIGKILL), like a crash; resolves when the process has exited. */
  kill(): Promise<void>
  /** Suspends it (SIGSTOP), like a machine that hangs. */
  pause(): void
  resume(): void
  /** Stops it gracefully (SIGTERM); resolves when the process has exited. */
  stop(): Promise<void>
  /** Stops it if it runs, and starts it; resolves when it is ready. */
  restart(): Promise<void>
}

/** The running process of a component. */
interface Running {
  readonly pid: number
  /** Stops it gracefully and deletes its files; does nothing if it has exited. */
  stop(): Promise<void>
}

/** Starts a component. Throws what `begin` throws. */
export async function startComponent<R extends Running>(given: {
  name: string
  where: string
  begin: () => Promise<R>
}): Promise<Component & { now(): R }> {
  const { name, where, begin } = given
  let running = await begin()
  const stop = async () => {
    sendSignal(running.pid, 'SIGCONT')
    await running.stop()
  }
  return {
    name,
    where,
    now: () => running,
    pid: () => running.pid,
    async kill() {
      const { pid } = running
      sendSignal(pid, 'SIGKILL')
      await waitFor(`${name} to exit`, () => !isAlive(pid), GONE_MS_MAX)
    },
    pause: () => void sendSignal(running.pid, 'SIGSTOP'),
    resume: () => void sendSignal(running.pid, 'SIGCONT'),
    stop,
    async restart() {
      await stop()
      running = await begin()
    },
  }
}

/** Whether a child process still runs. */
export function isAlive(pid: number): boolean {
  return sendSignal(pid, 0)
}

function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}
