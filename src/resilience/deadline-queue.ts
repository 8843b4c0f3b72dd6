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

/**
 * A call in a circular list. A removed call has links to itself only, so that it keeps no other
 * call alive. In a `Set`, removed calls survived minor garbage collections and doubled their time.
 */
class PendingCall {
  readonly deadlineMs: number
  readonly onTimeout: () => void
  previous: PendingCall = this
  next: PendingCall = this

  constructor(deadlineMs: number, onTimeout: () => void) {
    this.deadlineMs = deadlineMs
    this.onTimeout = onTimeout
  }
}

/** A timer that is delayed by more than this indicates that this process was busy or suspended. */
const STALL_MS_MIN = 5

const runHere: ReturnType<typeof AsyncLocalStorage.snapshot> = (act, ...args) => act(...args)

/** Creates a queue in which each call times out after `ms` milliseconds; `nowMs` is monotonic. */
export function createDeadlineQueue(ms: number, nowMs: () => number): DeadlineQueue {
  /** The list of the pending calls, in the order of their deadlines, starts and ends here. */
  const ends = new PendingCall(Infinity, () => undefined)
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
    while (ends.next.deadlineMs <= nowAtMs) expire(ends.next)
    isArmed = ends.next !== ends
    if (isArmed) arm(ends.next.deadlineMs - nowAtMs)
  }
  const add = (onTimeout: () => void): PendingCall => {
    // The timeout of a traced request is handled in that request's trace.
    const isTraced = spans?.currentIds() !== undefined
    const call = new PendingCall(
      nowMs() + ms,
      isTraced ? AsyncLocalStorage.bind(onTimeout) : onTimeout,
    )
    insertBefore(ends, call)
    if (!isArmed) arm(ms)
    return call
  }
  const expireAll = () => {
    const calls: PendingCall[] = [] // not those that the handlers add
    for (let call = ends.next; call !== ends; call = call.next) calls.push(call)
    calls.forEach(expire)
    return calls.length
  }
  return { add, remove, expireAll, within: (promise) => settleWithin(add, promise) }
}

function insertBefore(next: PendingCall, call: PendingCall): void {
  call.previous = next.previous
  call.next = next
  next.previous.next = call
  next.previous = call
}

function remove(call: PendingCall): boolean {
  if (call.next === call) return false
  call.previous.next = call.next
  call.next.previous = call.previous
  call.previous = call
  call.next = call
  return true
}

function expire(call: PendingCall): void {
  if (remove(call)) call.onTimeout()
}

/** Settles as `promise` does, or resolves to `undefined` at the deadline. */
function settleWithin<T>(add: DeadlineQueue['add'], promise: Promise<T>): Promise<T | undefined> {
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
