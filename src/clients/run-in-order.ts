// Runs work on many items, some in parallel, and reports up to which item all are done: after an
// error, another run can continue there.
import { OperatorError } from '../process/role.ts'
import { STOPPED, untilAborted } from './until-aborted.ts'

/** How long items in flight may take after a signal; the process stops after 7 s. */
const IN_FLIGHT_MS_MAX = 5000
/** Maximum number of items from the first pending to the last started one: all are in memory. */
const AHEAD_MAX = 10_000

/** The work. */
export interface OrderedWork<T> {
  /** Read when an item can be started. */
  readonly items: Iterable<T> | AsyncIterable<T>
  /** The maximum number of items in flight. */
  readonly parallelMax: number
  readonly run: (item: T) => Promise<void>
  /** Called once the first `items` items are done; `last` is the last of them. */
  readonly onDone: (items: number, last: T) => void
  /** Stops the work; items in flight are completed. */
  readonly signal: AbortSignal
}

/** Runs the work on all items. Throws the first error, or OperatorError after a signal. */
export async function runInOrder<T>(work: OrderedWork<T>): Promise<void> {
  const { parallelMax, run, signal } = work
  const errors: unknown[] = []
  const isStopped = () => signal.aborted || errors.length > 0
  const prefix = createPrefix(work)
  const items = prefix.number(isStopped)
  const runAll = async () => {
    while (!isStopped()) {
      const next = await items.next()
      if (next.done === true || isStopped()) return
      await run(next.value.item)
      prefix.complete(next.value)
    }
  }
  const workers = Array.from({ length: parallelMax }, async () => {
    try {
      await runAll()
    } catch (error) {
      errors.push(error)
    } finally {
      prefix.release()
    }
  })
  await untilAborted(signal, Promise.all(workers), IN_FLIGHT_MS_MAX)
  if (errors.length > 0) throw errors[0]
  if (!prefix.isComplete()) throw new OperatorError(STOPPED)
}

interface Numbered<T> {
  readonly at: number
  readonly item: T
}

/** Tracks the first items that are all done. */
function createPrefix<T>({ items, onDone }: OrderedWork<T>) {
  const done = new Map<number, T>()
  let firstPending = 0
  let taken = 0
  let isRead = false
  let release: () => void = () => undefined
  return {
    /** Numbers the items; waits while too many of them are started, unless `isStopped`. */
    async *number(isStopped: () => boolean): AsyncGenerator<Numbered<T>, void, undefined> {
      for await (const item of items) {
        while (taken - firstPending >= AHEAD_MAX) {
          if (isStopped()) return
          await new Promise<void>((resolve) => (release = resolve))
        }
        yield { at: taken++, item }
      }
      isRead = true
    },
    complete({ at, item }: Numbered<T>) {
      done.set(at, item)
      let last: T | undefined
      for (; done.has(firstPending); firstPending++) {
        last = done.get(firstPending)
        done.delete(firstPending)
      }
      if (last === undefined) return
      release()
      onDone(firstPending, last)
    },
    /** Lets a wait of `number` check its conditions. */
    release: () => {
      release()
    },
    isComplete: () => isRead && firstPending === taken,
  }
}
