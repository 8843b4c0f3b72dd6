// The queue to the writer thread. Writes that arrive while it is busy share its next transaction,
// so one disk sync serves them all; their promises resolve after that sync.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Metrics } from '../../telemetry/metrics.ts'
import { monotonicMs, within } from '../../resilience/deadline.ts'
import { createDeadlineQueue, type DeadlineQueue } from '../../resilience/deadline-queue.ts'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import type { OperationName } from './operations.ts'
import { type Parameter, type Write, writeOf } from './parameters.ts'
import type { Row } from './row.ts'
import type { StoreObserver } from './store-watch.ts'

/** Values by their parameter names in the SQL. */
type Parameters = Readonly<Record<string, Parameter>>

/** The reply of the thread to a group. */
export type GroupResult =
  | {
      readonly rows: readonly (Row | undefined)[]
      /** Whether any row was changed: a group that only reads succeeds even on a full disk. */
      readonly wrote: boolean
      readonly tookMs: number
    }
  | { readonly failure: string; readonly outcome: FailedOutcome }

interface Pending {
  readonly write: Write
  readonly resolve: (row: Row | undefined) => void
  readonly reject: (error: StoreError) => void
}

const PENDING_MAX = 10_000
const GROUP_MAX = 1000
const START_MS_MAX = 30_000
/** A longer transaction times out: its outcome is unknown. Less than CREATE_MS_MAX. */
const GROUP_MS_MAX = 2500

/** Where the writer reports its results. */
interface Reports {
  readonly metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>
  readonly watch: StoreObserver
}

/** Starts the thread on the database at `path`, which must be migrated. Throws after 30 s. */
export async function startWriterThread(path: string, reports: Reports): Promise<Writer> {
  const thread = new Worker(new URL('./writer-thread.ts', import.meta.url), {
    workerData: { path },
  })
  const timeoutError = () => new Error(`the writer thread did not start within ${START_MS_MAX} ms`)
  try {
    await within(START_MS_MAX, once(thread, 'message'), timeoutError)
  } catch (error) {
    void thread.terminate() // not awaited: a thread that waits for a hung disk does not stop
    throw error
  }
  return new Writer(thread, reports)
}

/** Runs operations durably, in the order of the calls. */
export class Writer {
  readonly #thread: Worker
  readonly #metrics: Reports['metrics']
  readonly #watch: StoreObserver
  #queue: Pending[] = []
  #inFlight: Pending[] | undefined
  #flushing = false
  #hung = false
  #closing = false
  #stoppedBy: string | undefined
  #onIdle: (() => void) | undefined
  /** After a pause of the whole process, the thread gets more time. */
  readonly #deadlines = createDeadlineQueue(GROUP_MS_MAX, monotonicMs)
  #deadline: ReturnType<DeadlineQueue['add']> | undefined

  constructor(thread: Worker, { metrics, watch }: Reports) {
    this.#thread = thread
    this.#metrics = metrics
    this.#watch = watch
    thread.on('message', (result: GroupResult) => {
      this.#settle(result)
    })
    thread.on('error', (error) => {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
    })
    thread.on('exit', () => {
      this.#fail(new Error('the writer thread has stopped'))
    })
  }

  /** Resolves to the operation's row once it is durable on disk. Throws StoreError. */
  run(name: OperationName, parameters: Parameters): Promise<Row | undefined> {
    if (this.#stoppedBy !== undefined) return Promise.reject(notDone(this.#stoppedBy))
    if (this.#hung) return Promise.reject(notDone('SQLite does not respond'))
    if (this.#queue.length >= PENDING_MAX) return Promise.reject(notDone('too many pending writes'))
    return new Promise((resolve, reject) => {
      this.#queue.push({ write: writeOf(name, parameters), resolve, reject })
      this.#flushSoon()
    })
  }

  /** Stops the thread after the pending writes. */
  async close(): Promise<void> {
    if (this.#stoppedBy !== undefined) return
    this.#closing = true
    const stopped = new Promise<void>((resolve) => {
      this.#thread.once('exit', () => {
        resolve()
      })
    })
    // A hung thread gets no grace period: its group has been reported as unknown.
    const graceMs = this.#hung ? 0 : GROUP_MS_MAX
    const forced = setTimeout(() => void this.#thread.terminate(), graceMs)
    if (this.#inFlight !== undefined || this.#queue.length > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    this.#thread.postMessage('close')
    await stopped
    clearTimeout(forced)
  }

  /** Waits until this event-loop turn completes, to send all its writes together. */
  #flushSoon(): void {
    if (this.#flushing || this.#inFlight !== undefined) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#inFlight !== undefined || this.#queue.length === 0) return
    const group = this.#queue.splice(0, GROUP_MAX)
    this.#inFlight = group
    this.#metrics.sqliteGroup.observe(group.length)
    this.#deadline = this.#deadlines.add(() => {
      this.#timeOut()
    })
    this.#thread.postMessage(group.map(({ write }) => write))
  }

  #settle(result: GroupResult): void {
    this.#clearDeadline()
    const group = this.#inFlight ?? []
    this.#inFlight = undefined
    this.#hung = false
    if ('rows' in result) {
      this.#metrics.sqliteCommitSeconds.observe(result.tookMs / 1000)
      // On a full disk, groups that change nothing still succeed.
      if (result.wrote) this.#watch.succeeded('write')
      group.forEach(({ resolve }, i) => {
        resolve(result.rows[i])
      })
    } else {
      this.#watch.failed('write', result.failure)
      const error = new StoreError(`SQLite: ${result.failure}`, { outcome: result.outcome })
      for (const { reject } of group) reject(error)
    }
    if (this.#queue.length > 0) this.#flush()
    else this.#onIdle?.()
  }

  #clearDeadline(): void {
    if (this.#deadline !== undefined) this.#deadlines.remove(this.#deadline)
  }

  /** The disk hangs: rejects all callers; the group stays in flight until the thread replies. */
  #timeOut(): void {
    const reason = 'SQLite did not respond within the deadline'
    this.#watch.failed('write', reason)
    const error = new StoreError(reason, { outcome: 'unknown' })
    for (const { reject } of this.#inFlight ?? []) reject(error)
    this.#inFlight = []
    this.#hung = true
    if (this.#closing) void this.#thread.terminate()
    for (const { reject } of this.#queue.splice(0)) reject(notDone('SQLite does not respond'))
  }

  /** The thread has stopped permanently, by itself or through `close`. */
  #fail(cause: Error): void {
    if (this.#stoppedBy !== undefined) return
    const { message } = cause
    this.#clearDeadline()
    this.#stoppedBy = message
    const error = new StoreError(message, { outcome: 'unknown' })
    for (const { reject } of this.#inFlight ?? []) reject(error)
    for (const { reject } of this.#queue.splice(0)) reject(notDone(message))
    this.#inFlight = undefined
    this.#onIdle?.()
    if (!this.#closing) this.#watch.writerStopped(cause)
  }
}

function notDone(message: string): StoreError {
  return new StoreError(message, { outcome: 'not-done' })
}
