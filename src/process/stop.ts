// Stops a process: the first signal shuts it down gracefully, a second one immediately.
import { constants } from 'node:os'

/** Stops one component; resolves when it has stopped. Call it once only. */
export type Stop = () => Promise<void>

/** Stops all components, one after the other; then throws the first error, if any. */
export async function stopInTurn(components: readonly Stop[]): Promise<void> {
  const errors: unknown[] = []
  for (const stop of components) {
    try {
      await stop()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

/**
 * Ctrl-C in a terminal arrives twice within milliseconds, from the terminal and from npm: signals
 * within this time of the first count as one.
 */
const ECHO_MS = 100

/**
 * How long a stop may take. After it the process kills itself, before a supervisor does (`docker
 * stop` after 10 s).
 */
const STOP_MS_MAX = 7000

/** Operations that Node.js runs in threads: process.exit waits for them, and handles no signal. */
const IN_THREAD = /^(?:FSReq|FileHandleCloseReq|GetAddrInfoReq|GetNameInfoReq)/
const EXIT_POLL_MS = 10

/**
 * Calls `stop` on SIGTERM or SIGINT, then exits with the code that it resolves to. A second signal
 * or the deadline `msMax` terminates the process immediately.
 */
export function stopOnSignal(options: {
  readonly stop: () => Promise<number>
  readonly onFailure: (error: unknown) => void
  /** Called when the stop times out. */
  readonly onTimeout: (ms: number) => void
  /** How long the stop may take; a role that is still starting may set it later. @default 7000 */
  readonly msMax?: () => number | undefined
}): void {
  const { stop, onFailure, onTimeout, msMax } = options
  let firstAtMs: number | undefined
  const readMsMax = () => msMax?.() ?? STOP_MS_MAX
  const armDeadline = (ms: number, waitMs = ms) => {
    setTimeout(() => {
      if (readMsMax() > ms) {
        armDeadline(readMsMax(), readMsMax() - ms)
        return
      }
      onTimeout(ms)
      terminate('SIGKILL')
    }, waitMs).unref()
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now()
      armDeadline(readMsMax())
      stop().then(exit, (error: unknown) => {
        onFailure(error)
        exit(1)
      })
    } else if (performance.now() - firstAtMs > ECHO_MS) {
      process.off('SIGTERM', onSignal)
      process.off('SIGINT', onSignal)
      terminate(signal)
    }
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

/** Exits once no thread is busy; the deadline of the stop and a second signal do not wait. */
function exit(code: number): void {
  const isBusy = process.getActiveResourcesInfo().some((name) => IN_THREAD.test(name))
  if (isBusy) setTimeout(exit, EXIT_POLL_MS, code)
  else process.exit(code)
}

/**
 * Terminates the process immediately, by the default action of a signal. Not process.exit: it waits
 * for threads, and one may be blocked on a hung disk.
 */
function terminate(signal: NodeJS.Signals): void {
  process.kill(process.pid, signal)
  // In PID 1 of a container, the kernel ignores the default action of a signal, even of SIGKILL.
  // execve starts another program in the process, which stops all threads.
  const exit = `process.exit(${128 + constants.signals[signal]})`
  process.execve?.(process.execPath, [process.execPath, '-e', exit], {})
}
