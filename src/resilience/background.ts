// Work that goes on beside the requests: one run at a time, at an interval or when nudged. A run
// that fails is reported and tried again at the next interval.

/** A running background task. */
export interface Background {
  /** Runs the task soon, however long the interval has still to go. */
  nudge(): void
  /** Ends it; resolves when the run under way has ended. */
  stop(): Promise<void>
}

/** Runs `task` now and then every `everyMs` after the end of the last run. */
export function runInBackground(options: {
  readonly everyMs: number
  readonly task: (signal: AbortSignal) => Promise<void>
  readonly onError: (error: unknown) => void
}): Background {
  const ending = new AbortController()
  const isEnding = () => ending.signal.aborted
  let wake: (() => void) | undefined
  let nudged = false
  const waited = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, nudged ? 0 : options.everyMs)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const running = (async () => {
    while (!isEnding()) {
      nudged = false
      await options.task(ending.signal).catch(options.onError)
      if (!isEnding()) await waited()
    }
  })()
  return {
    nudge() {
      nudged = true
      wake?.()
    },
    async stop() {
      ending.abort()
      wake?.()
      await running
    },
  }
}
