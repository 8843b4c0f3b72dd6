// The way to the thread that writes. Writes that come while it is busy share its next transaction,
// so one sync of the disk serves them all; a promise resolves after that sync.
import { Worker } from 'node:worker_threads'
import type { SQLOutputValue } from 'node:sqlite'
import type { Metrics } from '../../process/metrics.ts'
import { type FailedOutcome, StoreError } from '../../process/store-error.ts'
import type { OperationName } from './operations.ts'
import { type Parameter, type Write, writeOf } from './parameters.ts'

/** A row that a statement gives. */
export type Row = Record<string, SQLOutputValue>

/** Values by the names that the SQL gives them. */
type Parameters = Readonly<Record<string, Parameter>>

/** What the thread says of a group. */
export type Answer =
  | { readonly rows: readonly (Row | undefined)[]; readonly tookMs: number }
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
/** A transaction that takes longer than this is given up: its outcome is unknown. */
const GROUP_MS_MAX = 4000

/** Starts the thread on the database at `path`, which must be migrated. */
export async function startWriter(
  path: string,
  metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>,
): Promise<Writer> {
  const thread = new Worker(new URL('./writer-thread.ts', import.meta.url), {
    workerData: { path },
  })
  await new Promise<void>((resolve, reject) => {
    thread.once('message', () => {
      resolve()
    })
    thread.once('error', reject)
  })
  return new GroupWriter(thread, metrics)
}

class GroupWriter implements Writer {
  readonly #thread: Worker
  readonly #metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>
  #waiting: Pending[] = []
  #inHand: Pending[] | undefined
  #flushing = false
  #hung = false
  #broken: string | undefined
  #onIdle: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(thread: Worker, metrics: Pick<Metrics, 'sqliteGroup' | 'sqliteCommitSeconds'>) {
    this.#thread = thread
    this.#metrics = metrics
    thread.on('message', (answer: Answer) => {
      this.#settle(answer)
    })
    thread.on('error', (error) => {
      this.#break(error instanceof Error ? error.message : String(error))
    })
    thread.on('exit', () => {
      this.#break('the writing thread has ended')
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
    const ended = new Promise<void>((resolve) => {
      this.#thread.once('exit', () => {
        resolve()
      })
    })
    // Also a thread that hangs in its last transaction ends by then.
    const forced = setTimeout(() => void this.#thread.terminate(), GROUP_MS_MAX)
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
      group.forEach(({ resolve }, i) => {
        resolve(answer.rows[i])
      })
    } else {
      const error = new StoreError(`SQLite: ${answer.failure}`, { outcome: answer.outcome })
      for (const { reject } of group) reject(error)
    }
    if (this.#waiting.length > 0) this.#flush()
    else this.#onIdle?.()
  }

  /** The disk hangs: those who wait are told, and the thread keeps the group until it answers. */
  #giveUp(): void {
    const error = new StoreError('SQLite did not answer in time', { outcome: 'unknown' })
    for (const { reject } of this.#inHand ?? []) reject(error)
    this.#inHand = []
    this.#hung = true
    for (const { reject } of this.#waiting.splice(0)) reject(notDone('SQLite does not answer'))
  }

  #break(message: string): void {
    clearTimeout(this.#timer)
    this.#broken ??= message
    const error = new StoreError(message, { outcome: 'unknown' })
    for (const { reject } of this.#inHand ?? []) reject(error)
    for (const { reject } of this.#waiting.splice(0)) reject(notDone(message))
    this.#inHand = undefined
    this.#onIdle?.()
  }
}

function notDone(message: string): StoreError {
  return new StoreError(message, { outcome: 'not-done' })
}
