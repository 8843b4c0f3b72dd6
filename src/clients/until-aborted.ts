// Stops waiting for a call when the command is stopped.
import { OperatorError } from '../process/role.ts'

/** The result of `call`; rejects with OperatorError `graceMs` after `signal` aborts. */
export function untilAborted<T>(signal: AbortSignal, call: Promise<T>, graceMs = 0): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const stop = () => {
      reject(new OperatorError(STOPPED))
    }
    const abort = () => {
      if (graceMs === 0) stop()
      else timer = setTimeout(stop, graceMs)
    }
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    void call.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    })
  })
}

/** The cause in the error of a command that a signal stopped. */
export const STOPPED = 'a signal was received'
