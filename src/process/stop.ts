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
 * Calls `stop` at SIGTERM or SIGINT, then ends the process with the code that it resolves to; a
 * second signal ends it at once.
 */
export function stopOnSignal(
  stop: () => Promise<number>,
  onFailure: (error: unknown) => void,
): void {
  let firstAtMs: number | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now()
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
