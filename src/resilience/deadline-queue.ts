// One deadline for many calls at once: all wait equally long, so one timer serves them in their
// order. A timer of its own for each call would cost more than the call; and a call that has ended
// is let go at once, for what it holds would be collected in vain until its time had passed.
import { AsyncLocalStorage } from 'node:async_hooks'
import { spansNow } from '../telemetry/spans.ts'

/** Calls that must be answered within a time. */
export interface DeadlineQueue {
  /** What `promise` gives, or `undefined` once the time has passed. Throws what it throws. */
  within<T>(promise: Promise<T>): Promise<T | undefined>
  /** Begins to wait; `onLate` is called once the time has passed, unless `end` came before. */
  begin(onLate: () => void): Waiting
  /** Ends the waiting; `false`: it has ended before. */
  end(waiting: Waiting): boolean
  /** Ends all waiting now, as if its time had passed; returns how many waited. */
  expireAll(): number
}

/** A call that is waited for. */
interface Waiting {
  readonly untilMs: number
}

/** Those that wait are a chain, in the order of their deadlines. */
interface Link extends Waiting {
  readonly onLate: () => void
  isWaiting: boolean
  before: Link | undefined
  after: Link | undefined
}

/** A timer that is later than this was late because this process was busy or held. */
const SLEPT_MS_MIN = 5

const inside: ReturnType<typeof AsyncLocalStorage.snapshot> = (act, ...given) => act(...given)

/** Makes a queue whose calls have `ms` each; `nowMs` is monotonic. */
export function createDeadlineQueue(ms: number, nowMs: () => number): DeadlineQueue {
  let first: Link | undefined
  let last: Link | undefined
  let isArmed = false
  let hasWaitedLonger = false
  const spans = spansNow()
  // A timer serves many: what it logs is not of the traced request that happened to begin it.
  const outside = spans === undefined ? inside : AsyncLocalStorage.snapshot()

  const arm = (delayMs: number) => {
    isArmed = true
    // Timers come before what sockets have to tell: an answer that is there already is taken first.
    const dueMs = nowMs() + Math.max(0, delayMs)
    const timer = outside(() =>
      setTimeout(() => setImmediate(expireDue, dueMs), Math.max(0, delayMs)),
    )
    timer.unref() // what is waited for keeps the process; nobody may wait any more
  }
  const expireDue = (dueMs: number) => {
    const nowAtMs = nowMs()
    // Who slept itself, as in a collection of garbage, cannot tell that nobody answered meanwhile.
    const sleptMs = nowAtMs - dueMs
    if (sleptMs > SLEPT_MS_MIN && !hasWaitedLonger) {
      hasWaitedLonger = true
      arm(Math.min(sleptMs, ms))
      return
    }
    hasWaitedLonger = false
    while (first !== undefined && first.untilMs <= nowAtMs) {
      const { onLate } = first
      takeOut(first)
      onLate()
    }
    isArmed = false
    if (first !== undefined) arm(first.untilMs - nowAtMs)
  }
  const takeOut = (link: Link) => {
    const { before, after } = link
    if (before === undefined) first = after
    else before.after = after
    if (after === undefined) last = before
    else after.before = before
    link.before = link.after = undefined
    link.isWaiting = false
  }
  const begin = (onLate: () => void): Link => {
    const link: Link = {
      untilMs: nowMs() + ms,
      // What is told of a late call is of its own request.
      onLate: spans?.idsNow() === undefined ? onLate : AsyncLocalStorage.bind(onLate),
      isWaiting: true,
      before: last,
      after: undefined,
    }
    if (last === undefined) first = link
    else last.after = link
    last = link
    if (!isArmed) arm(ms)
    return link
  }
  const end = (waiting: Waiting): boolean => {
    const link = waiting as Link
    if (!link.isWaiting) return false
    takeOut(link)
    return true
  }
  const queue = { begin, end, expireAll: () => expireChain(first, end) }
  return { ...queue, within: (promise) => settleWithin(queue, promise) }
}

/** Ends those that wait now, and not what they begin when they are ended; how many there were. */
function expireChain(first: Link | undefined, end: (waiting: Waiting) => boolean): number {
  const chain: Link[] = []
  for (let link = first; link !== undefined; link = link.after) chain.push(link)
  for (const link of chain) if (end(link)) link.onLate()
  return chain.length
}

/** What `promise` gives, or `undefined` once the queue's time has passed. */
function settleWithin<T>(
  { begin, end }: Pick<DeadlineQueue, 'begin' | 'end'>,
  promise: Promise<T>,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const waiting = begin(() => {
      resolve(undefined)
    })
    promise.then(
      (value) => {
        end(waiting)
        resolve(value)
      },
      (error: unknown) => {
        end(waiting)
        reject(error instanceof Error ? error : new Error(String(error)))
      },
    )
  })
}
