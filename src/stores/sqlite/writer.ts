// The way to the thread that writes. Writes that come while it is busy share its next transaction,
// so one sync of the disk serves them all; a promise resolves after that sync.
import { Worker } from 'node:worker_threads'
import type { SQLOutputValue } from 'node:sqlite'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import type { OperationName } from './operations.ts'
import { type Parameter, type Write, writeOf } from './parameters.ts'
import type { WatchedBy } from './store-watch.ts'

/** A row that a statement gives. */
export type Row = Record<string, SQLOutputValue>

/** Values by the names that the SQL gives them. */
type Parameters = Readonly<Record<string, Parameter>>

/** What the thread says of a group. */
export type Answer =
  | {
      readonly rows: readonly (Row | undefined)[]
      /** Whether anything was changed: a group that only reads needs no room on the disk. */
      readonly wrote: boolean
      readonly tookMs: number
    }
  | { readonly failure: string; readonly outcome: FailedOutcome }

/** Runs operations durably, in the order they were given. */
export interface Writer {
  /** Resolves to the operation's row once it is on the disk. Throws StoreError. */
  run(name: OperationName, parameters: Parameters): Promise<Row | undefined>
  /** Ends the thread after what it has in hand. */
  close(): Promise<void>
}

interface Pending {
  readonly write: Write
  readonly resolve: (row: Row | undefined) => void
  readonly reject: (error: StoreError) => void
}

const PENDING_MAX = 10_000
const GROUP_MAX = 1000
/** A transaction that takes longer is aborted: its outcome is unknown. Below CREATE_MS_MAX. */
const GROUP_MS_MAX = 2500

/** What the writer reports to. */
interface Reports {
  readonly metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>
  readonly watch: WatchedBy
}

/** Starts the thread on the database at `path`, which must be migrated. */
export async function startWriter(path: string, reports: Reports): Promise<Writer> {
  const thread = new Worker(new URL('./writer-thread.ts', import.meta.url), {
    workerData: { path },
  })
  await new Promise<void>((resolve, reject) => {
    thread.once('message', () => {
      resolve()
    })
    thread.once('error', reject)
  })
  return new GroupWriter(thread, reports)
}

class GroupWriter implements Writer {
  readonly #thread: Worker
  readonly #metrics: Reports['metrics']
  readonly #watch: WatchedBy
  #waiting: Pending[] = []
  #inHand: Pending[] | undefined
  #flushing = false
  #hung = false
  #closing = false
  #broken: string | undefined
  #onIdle: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(thread: Worker, { metrics, watch }: Reports) {
    this.#thread = thread
    this.#metrics = metrics
    this.#watch = watch
    thread.on('message', (answer: Answer) => {
      this.#settle(answer)
    })
    thread.on('error', (error) => {
      this.#break(error instanceof Error ? error : new Error(String(error)))
    })
    thread.on('exit', () => {
      this.#break(new Error('the writing thread has ended'))
    })
  }

  run(name: OperationName, parameters: Parameters): Promise<Row | undefined> {
    if (this.#broken !== undefined) return Promise.reject(notDone(this.#broken))
    if (this.#hung) return Promise.reject(notDone('SQLite does not answer'))
    if (this.#waiting.length >= PENDING_MAX) return Promise.reject(notDone('too many writes wait'))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write: writeOf(name, parameters), resolve, reject })
      this.#flushSoon()
    })
  }

  async close(): Promise<void> {
    if (this.#broken !== undefined) return
    this.#closing = true
    const ended = new Promise<void>((resolve) => {
      this.#thread.once('exit', () => {
        resolve()
      })
    })
    // A thread that hangs already gets no more time: its group has been reported as unknown.
    const graceMs = this.#hung ? 0 : GROUP_MS_MAX
    const forced = setTimeout(() => void this.#thread.terminate(), graceMs)
    if (this.#inHand !== undefined || this.#waiting.length > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    this.#thread.postMessage('close')
    await ended
    clearTimeout(forced)
  }

  /** Waits for the end of this turn of the loop, so that writes of one turn go together. */
  #flushSoon(): void {
    if (this.#flushing || this.#inHand !== undefined) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#inHand !== undefined || this.#waiting.length === 0) return
    const group = this.#waiting.splice(0, GROUP_MAX)
    this.#inHand = group
    this.#metrics.sqliteGroup.observe(group.length)
    this.#timer = setTimeout(() => {
      this.#giveUp()
    }, GROUP_MS_MAX)
    this.#thread.postMessage(group.map(({ write }) => write))
  }

  #settle(answer: Answer): void {
    clearTimeout(this.#timer)
    const group = this.#inHand ?? []
    this.#inHand = undefined
    this.#hung = false
    if ('rows' in answer) {
      this.#metrics.sqliteCommitSeconds.observe(answer.tookMs / 1000)
      // A disk that is full still lets groups pass that change nothing.
      if (answer.wrote) this.#watch.worked('write')
      group.forEach(({ resolve }, i) => {
        resolve(answer.rows[i])
      })
    } else {
      this.#watch.failed('write', answer.failure)
      const error = new StoreError(`SQLite: ${answer.failure}`, { outcome: answer.outcome })
      for (const { reject } of group) reject(error)
    }
    if (this.#waiting.length > 0) this.#flush()
    else this.#onIdle?.()
  }

  /** The disk hangs: those who wait are told, and the thread keeps the group until it answers. */
  #giveUp(): void {
    const reason = 'SQLite did not answer in time'
    this.#watch.failed('write', reason)
    const error = new StoreError(reason, { outcome: 'unknown' })
    for (const { reject } of this.#inHand ?? []) reject(error)
    this.#inHand = []
    this.#hung = true
    if (this.#closing) void this.#thread.terminate()
    for (const { reject } of this.#waiting.splice(0)) reject(notDone('SQLite does not answer'))
  }

  /** The thread is gone, for good: by itself, or as `close` asked. */
  #break(cause: Error): void {
    if (this.#broken !== undefined) return
    const { message } = cause
    clearTimeout(this.#timer)
    this.#broken = message
    const error = new StoreError(message, { outcome: 'unknown' })
    for (const { reject } of this.#inHand ?? []) reject(error)
    for (const { reject } of this.#waiting.splice(0)) reject(notDone(message))
    this.#inHand = undefined
    this.#onIdle?.()
    if (!this.#closing) this.#watch.ended(cause)
  }
}

function notDone(message: string): StoreError {
  return new StoreError(message, { outcome: 'not-done' })
}
