// Ending a process in good order: the first signal stops it gently, a second one at once.

/** Stops one part; resolves when it has stopped. Safe to call once. */
export type Stop = () => Promise<void>

/** Stops parts one after the other, every one of them; then throws the first error, if any. */
export async function stopInTurn(parts: readonly Stop[]): Promise<void> {
  const errors: unknown[] = []
  for (const stop of parts) {
    try {
      await stop()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

/**
 * A terminal's Ctrl-C reaches us twice, from the terminal and again from npm, within milliseconds:
 * within this time two signals are one.
 */
const ECHO_MS = 100

/**
 * How long a stop may take: what stalls then is abandoned, before those that wait for the process
 * kill it (`docker stop` after 10 s).
 */
const STOP_MS_MAX = 7000

/**
 * Calls `stop` at SIGTERM or SIGINT, then ends the process with the code that it resolves to; a
 * second signal, or the end of `msMax`, ends it at once.
 */
export function stopOnSignal(given: {
  readonly stop: () => Promise<number>
  readonly onFailure: (error: unknown) => void
  /** Told that the time is over. */
  readonly onLate: (ms: number) => void
  /** How long the stop may take. @default 7000 */
  readonly msMax?: () => number | undefined
}): void {
  const { stop, onFailure, onLate, msMax } = given
  let firstAtMs: number | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now()
      const ms = msMax?.() ?? STOP_MS_MAX
      setTimeout(() => {
        onLate(ms)
        // Not process.exit: it waits for threads, and one may wait for a disk that hangs.
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
