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
}

/** A node of the linked list of pending calls, which is in the order of their deadlines. */
interface QueueNode extends PendingCall {
  readonly onTimeout: () => void
  isPending: boolean
  previous: QueueNode | undefined
  next: QueueNode | undefined
}

/** A timer with more delay than this is due to a stall: this process was busy or suspended. */
const STALL_MS_MIN = 5

const runHere: ReturnType<typeof AsyncLocalStorage.snapshot> = (act, ...args) => act(...args)

/** Creates a queue in which each call times out after `ms` milliseconds; `nowMs` is monotonic. */
export function createDeadlineQueue(ms: number, nowMs: () => number): DeadlineQueue {
  let first: QueueNode | undefined
  let last: QueueNode | undefined
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
    while (first !== undefined && first.deadlineMs <= nowAtMs) {
      const { onTimeout } = first
      unlink(first)
      onTimeout()
    }
    isArmed = false
    if (first !== undefined) arm(first.deadlineMs - nowAtMs)
  }
  const unlink = (node: QueueNode) => {
    const { previous, next } = node
    if (previous === undefined) first = next
    else previous.next = next
    if (next === undefined) last = previous
    else next.previous = previous
    node.previous = node.next = undefined
    node.isPending = false
  }
  const add = (onTimeout: () => void): QueueNode => {
    const node: QueueNode = {
      deadlineMs: nowMs() + ms,
      // The timeout of a traced request is handled in that request's trace.
      onTimeout: spans?.currentIds() === undefined ? onTimeout : AsyncLocalStorage.bind(onTimeout),
      isPending: true,
      previous: last,
      next: undefined,
    }
    if (last === undefined) first = node
    else last.next = node
    last = node
    if (!isArmed) arm(ms)
    return node
  }
  const remove = (call: PendingCall): boolean => {
    const node = call as QueueNode
    if (!node.isPending) return false
    unlink(node)
    return true
  }
  const queue = { add, remove, expireAll: () => expireList(first, remove) }
  return { ...queue, within: (promise) => settleWithin(queue, promise) }
}

/** Times out the calls pending now, not those that their handlers add; returns how many. */
function expireList(first: QueueNode | undefined, remove: (call: PendingCall) => boolean): number {
  const nodes: QueueNode[] = []
  for (let node = first; node !== undefined; node = node.next) nodes.push(node)
  for (const node of nodes) if (remove(node)) node.onTimeout()
  return nodes.length
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
