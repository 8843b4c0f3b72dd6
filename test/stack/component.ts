// One process of the stack: it can be killed, paused, stopped, and restarted on the same ports.
import type { CassandraCluster } from '../dependencies/cassandra.ts'
import { waitFor } from '../kit/wait-for.ts'

/**
 * Wrapper command for a process: it is killed when our process exits, and does not receive the
 * Ctrl-C of the terminal.
 */
export const DIE_WITH_PARENT: readonly string[] = ['setsid', 'setpriv', '--pdeathsig', 'KILL']

const STOPPED_MS_MAX = 30_000

/** A process of the stack. */
export interface Component {
  /** Such as `redirect-1`. */
  readonly name: string
  /** Where it listens, as printed for people. */
  readonly addresses: string
  readonly pid: () => number
  /** Kills it with SIGKILL, like a crash; resolves when the process has exited. */
  kill(): Promise<void>
  /** Suspends it with SIGSTOP, like a machine that hangs. */
  pause(): void
  resume(): void
  /** Stops it gracefully with SIGTERM; resolves when the process has exited. */
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

/** Starts a component. Throws what `start` throws. */
export async function startComponent<R extends Running>(given: {
  name: string
  addresses: string
  start: () => Promise<R>
}): Promise<Component & { now(): R }> {
  const { name, addresses, start } = given
  let running = await start()
  const stop = async () => {
    sendSignal(running.pid, 'SIGCONT')
    await running.stop()
  }
  return {
    name,
    addresses,
    now: () => running,
    pid: () => running.pid,
    async kill() {
      const { pid } = running
      sendSignal(pid, 'SIGKILL')
      await waitFor(`${name} to exit`, () => !isAlive(pid), STOPPED_MS_MAX)
    },
    pause: () => void sendSignal(running.pid, 'SIGSTOP'),
    resume: () => void sendSignal(running.pid, 'SIGCONT'),
    stop,
    async restart() {
      await stop()
      running = await start()
    },
  }
}

/** A Cassandra node as a component. */
export function componentOfNode(
  node: CassandraCluster['nodes'][number],
  ordinal: number,
  port: number,
): Component {
  return {
    name: `cassandra-${String(ordinal + 1)}`,
    addresses: `CQL ${node.address}:${String(port)}, log ${node.logPath}`,
    pid: node.pid,
    kill: () => node.kill(),
    pause: () => {
      node.pause()
    },
    resume: () => {
      node.resume()
    },
    stop: () => node.kill(),
    restart: () => node.restart(),
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
