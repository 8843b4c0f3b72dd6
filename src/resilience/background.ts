// Background tasks: one run at a time, at an interval or when triggered. A failed run is reported
// and retried after the next interval.

/** A running background task. */
export interface Background {
  /** Runs the task now, or directly after the current run, without waiting for the interval. */
  trigger(): void
  /** Aborts the task; resolves when the current run has completed. */
  stop(): Promise<void>
}

/** Runs `task` now, then `everyMs` milliseconds after each run completes. */
export function runInBackground(options: {
  readonly everyMs: number
  readonly task: (signal: AbortSignal) => Promise<void> | void
  readonly onError: (error: unknown) => void
}): Background {
  const stopping = new AbortController()
  const isStopping = () => stopping.signal.aborted
  let waiting = Promise.withResolvers<undefined>()
  let isTriggered = false
  const delayMs = () => (isTriggered ? 0 : options.everyMs)
  const running = (async () => {
    while (!isStopping()) {
      isTriggered = false
      try {
        await options.task(stopping.signal)
      } catch (error) {
        options.onError(error)
      }
      if (isStopping()) return
      waiting = Promise.withResolvers()
      const timer = setTimeout(waiting.resolve, delayMs(), undefined)
      await waiting.promise
      clearTimeout(timer)
    }
  })()
  return {
    trigger() {
      isTriggered = true
      waiting.resolve(undefined)
    },
    async stop() {
      stopping.abort()
      waiting.resolve(undefined)
      await running
    },
  }
}
