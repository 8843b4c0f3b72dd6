// One process of the stack: it can be killed, held, ended and started anew, on the ports it had.
import { waitFor } from '../component/wait-for.ts'

/**
 * What to run before a process: it dies with whoever started it, and a Ctrl-C in the terminal is
 * for whoever started it alone.
 */
export const NEVER_ALONE: readonly string[] = ['setsid', 'setpriv', '--pdeathsig', 'KILL']

const GONE_MS_MAX = 30_000

/** A process of the stack. */
export interface Part {
  /** Such as `redirect-1`. */
  readonly name: string
  /** Where it is found, for people. */
  readonly where: string
  readonly pid: () => number
  /** Ends it at once (SIGKILL), as a crash would; resolves when it is gone. */
  kill(): Promise<void>
  /** Holds it (SIGSTOP), as a machine that hangs would. */
  pause(): void
  resume(): void
  /** Ends it in order (SIGTERM); resolves when it has ended. */
  stop(): Promise<void>
  /** Ends it if need be and starts it anew; resolves when it is ready. */
  restart(): Promise<void>
}

/** What a part runs. */
interface Running {
  readonly pid: number
  /** Ends it in order and removes what it left behind; nothing where it has ended. */
  stop(): Promise<void>
}

/** Starts a part. Throws what `begin` throws. */
export async function openPart<R extends Running>(given: {
  name: string
  where: string
  begin: () => Promise<R>
}): Promise<Part & { now(): R }> {
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
      await waitFor(`the end of ${name}`, () => !isAlive(pid), GONE_MS_MAX)
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

/** Whether a child of ours is there still. */
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
