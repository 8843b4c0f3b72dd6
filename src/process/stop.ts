// Stops a process: the first signal shuts it down gracefully, a second one immediately.

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

/**
 * Calls `stop` on SIGTERM or SIGINT, then exits with the code that it resolves to. A second signal
 * or the deadline `msMax` terminates the process immediately.
 */
export function stopOnSignal(options: {
  readonly stop: () => Promise<number>
  readonly onFailure: (error: unknown) => void
  /** Called when the stop times out. */
  readonly onTimeout: (ms: number) => void
  /** How long the stop may take. @default 7000 */
  readonly msMax?: () => number | undefined
}): void {
  const { stop, onFailure, onTimeout, msMax } = options
  let firstAtMs: number | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now()
      const ms = msMax?.() ?? STOP_MS_MAX
      setTimeout(() => {
        onTimeout(ms)
        // Not process.exit: it waits for threads, and one may be blocked on a hung disk.
        process.kill(process.pid, 'SIGKILL')
      }, ms).unref()
      stop().then(
        (code) => process.exit(code),
        (error: unknown) => {
          onFailure(error)
          process.exit(1)
        },
      )
    } else if (performance.now() - firstAtMs > ECHO_MS) {
      process.exit(signal === 'SIGINT' ? 130 : 143)
    }
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}
