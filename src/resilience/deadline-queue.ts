// Deadlines of many concurrent calls with the same timeout. They expire in order, so one timer
// serves them all: a timer for each call would cost more than the call itself. A completed call is
// removed immediately, so that its memory is not retained until its deadline.
import { AsyncLocalStorage } from 'node:async_hooks'
import { installedSpans } from '../telemetry/spans.ts'

/** Calls that must complete within the same timeout. */
export interface DeadlineQueue {
  /** Settles as `promise` does, or resolves to `undefined` at the deadline. */
  within<T>(promise: Promise<T>): Promise<T | undefined>
  /** Adds a call; `onTimeout` is called at its deadline unless `remove` is called before. */
  add(onTimeout: () => void): PendingCall
  /** Removes a call; returns `false` if it has already been removed or has timed out. */
  remove(call: PendingCall): boolean
  /** Times out all pending calls now; returns how many there were. */
  expireAll(): number
}

/** A call in the queue. */
interface PendingCall {
  readonly deadlineMs: number
  readonly onTimeout: () => void
}

/** A timer that is delayed by more than this indicates that this process was busy or suspended. */
const STALL_MS_MIN = 5

const runHere: ReturnType<typeof AsyncLocalStorage.snapshot> = (act, ...args) => act(...args)

/** Creates a queue in which each call times out after `ms` milliseconds; `nowMs` is monotonic. */
export function createDeadlineQueue(ms: number, nowMs: () => number): DeadlineQueue {
  /** In the order of their deadlines. */
  const pending = new Set<PendingCall>()
  let isArmed = false
  /** Whether the due deadlines have been extended, once, because this process stalled. */
  let isExtended = false
  const spans = installedSpans()
  // The timer serves many calls: it must not run in the trace of the request that armed it.
  const outsideTraces = spans === undefined ? runHere : AsyncLocalStorage.snapshot()

  const arm = (delayMs: number) => {
    isArmed = true
    // Node.js runs timers before socket events: setImmediate delays expiry until sockets are read.
    const dueMs = nowMs() + Math.max(0, delayMs)
    const timer = outsideTraces(() =>
      setTimeout(() => setImmediate(expireDue, dueMs), Math.max(0, delayMs)),
    )
    timer.unref() // the pending I/O keeps the process running; the timer alone must not
  }
  const expireDue = (dueMs: number) => {
    const nowAtMs = nowMs()
    // After a stall of this process, such as garbage collection, responses may not be read yet.
    const stalledMs = nowAtMs - dueMs
    if (stalledMs > STALL_MS_MIN && !isExtended) {
      isExtended = true
      arm(Math.min(stalledMs, ms))
      return
    }
    isExtended = false
    for (const call of pending) {
      if (call.deadlineMs > nowAtMs) {
        arm(call.deadlineMs - nowAtMs)
        return
      }
      pending.delete(call)
      call.onTimeout()
    }
    isArmed = false
  }
  const add = (onTimeout: () => void): PendingCall => {
    const call: PendingCall = {
      deadlineMs: nowMs() + ms,
      // The timeout of a traced request is handled in that request's trace.
      onTimeout: spans?.currentIds() === undefined ? onTimeout : AsyncLocalStorage.bind(onTimeout),
    }
    pending.add(call)
    if (!isArmed) arm(ms)
    return call
  }
  const remove = (call: PendingCall) => pending.delete(call)
  const expireAll = () => {
    const calls = [...pending] // not those that the handlers add
    for (const call of calls) if (remove(call)) call.onTimeout()
    return calls.length
  }
  return { add, remove, expireAll, within: (promise) => settleWithin({ add, remove }, promise) }
}

/** Settles as `promise` does, or resolves to `undefined` at the deadline. */
function settleWithin<T>(
  { add, remove }: Pick<DeadlineQueue, 'add' | 'remove'>,
  promise: Promise<T>,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const call = add(() => {
      resolve(undefined)
    })
    promise.then(
      (value) => {
        remove(call)
        resolve(value)
      },
      (error: unknown) => {
        remove(call)
        reject(error instanceof Error ? error : new Error(String(error)))
      },
    )
  })
}
