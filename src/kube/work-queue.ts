// A queue of keys for workers, like client-go's. Each key is queued at most once; a key that is
// added while a worker processes it is requeued afterwards, so no two workers share a key.
import type { Metrics } from '../telemetry/metrics.ts'
import type { Scheduler } from './scheduler.ts'

/** The metrics of a queue. */
type QueueMetrics = Pick<
  Metrics,
  | 'queueDepth'
  | 'queueAdds'
  | 'queueRetries'
  | 'queueWaitSeconds'
  | 'queueWorkSeconds'
  | 'queueUnfinishedSeconds'
  | 'queueLongestSeconds'
>

/** A queue of keys. */
export interface WorkQueue {
  /** Adds a key. */
  readonly add: (key: string) => void
  /** Adds a key after `ms` milliseconds; of several delays for one key the earliest applies. */
  readonly addAfter: (key: string, ms: number) => void
  /** Adds a key after a delay that grows with each failure of the key. */
  readonly addFailed: (key: string) => void
  /** Resets the failures of a key. */
  readonly resetFailures: (key: string) => void
  /** Waits for the next key; the worker must pass it to `done`. `undefined` after shutdown. */
  readonly take: () => Promise<string | undefined>
  /** Marks a key as processed. */
  readonly done: (key: string) => void
  /** Drops all keys and accepts no new ones. */
  readonly shutDown: () => void
  /** Number of queued keys. */
  readonly depth: () => number
  /** The processing time so far of the key that takes longest. */
  readonly longestMs: () => number
  /** Updates the metrics of unfinished work. */
  readonly updateMetrics: () => void
}

/** client-go's delays: 5 ms, doubled at each failure of a key; all keys: 10 retries per second. */
const FAILED_MS_FIRST = 5
const FAILED_MS_MAX = 1_000_000
const FAILED_PER_SECOND = 10
const FAILED_BURST = 100
const KEYS_MAX = 100_000

interface QueueDeps {
  readonly name: string
  readonly scheduler: Scheduler
  readonly metrics: QueueMetrics
}

/** Creates a queue whose metrics have the label `name`. */
export function createWorkQueue(deps: QueueDeps): WorkQueue {
  const { name, scheduler, metrics } = deps
  const keys = createKeys(deps)
  const timers = createTimers(scheduler, keys.add)
  const failures = createFailureDelays(scheduler)
  return {
    ...keys,
    addAfter: timers.set,
    addFailed(key) {
      metrics.queueRetries.inc({ name })
      timers.set(key, failures.nextMs(key))
    },
    resetFailures: failures.reset,
    shutDown() {
      timers.shutDown()
      keys.shutDown()
    },
  }
}

/** The keys that are queued, and those that workers process. */
function createKeys({ name, scheduler, metrics }: QueueDeps) {
  /** Waiting keys in order of arrival, with the arrival time. */
  const queued = new Map<string, number>()
  /** Keys that workers process, with the time at which a worker took them. */
  const processing = new Map<string, number>()
  /** Keys that were added while a worker processes them. */
  const readded = new Set<string>()
  const takers: ((key: string | undefined) => void)[] = []
  let isShutDown = false
  const assign = (key: string, addedMs: number, taker: (key: string) => void) => {
    const nowMs = scheduler.nowMs()
    metrics.queueWaitSeconds.labels(name).observe((nowMs - addedMs) / 1000)
    processing.set(key, nowMs)
    taker(key)
  }
  const add = (key: string) => {
    if (isShutDown || queued.has(key) || readded.has(key)) return
    if (queued.size + readded.size >= KEYS_MAX)
      throw new Error(`more than ${KEYS_MAX} keys are queued`)
    metrics.queueAdds.inc({ name })
    if (processing.has(key)) readded.add(key)
    else enqueue(key)
  }
  const enqueue = (key: string) => {
    const taker = takers.shift()
    if (taker !== undefined) assign(key, scheduler.nowMs(), taker)
    else queued.set(key, scheduler.nowMs())
    metrics.queueDepth.set({ name }, queued.size)
  }
  const take = (resolve: (key: string | undefined) => void) => {
    const [next] = queued
    if (next === undefined) {
      takers.push(resolve)
      return
    }
    const [key, addedMs] = next
    queued.delete(key)
    metrics.queueDepth.set({ name }, queued.size)
    assign(key, addedMs, resolve)
  }
  const durationsMs = () =>
    [...processing.values()].map((startedMs) => scheduler.nowMs() - startedMs)
  const longestMs = () => Math.max(0, ...durationsMs())
  return {
    add,
    longestMs,
    take: () => (isShutDown ? Promise.resolve(undefined) : new Promise(take)),
    done(key: string) {
      const startedMs = processing.get(key)
      if (startedMs === undefined) return
      processing.delete(key)
      metrics.queueWorkSeconds.labels(name).observe((scheduler.nowMs() - startedMs) / 1000)
      if (readded.delete(key)) enqueue(key)
    },
    shutDown() {
      isShutDown = true
      queued.clear()
      readded.clear()
      for (const taker of takers.splice(0)) taker(undefined)
      metrics.queueDepth.set({ name }, 0)
    },
    depth: () => queued.size,
    updateMetrics() {
      const sumMs = durationsMs().reduce((total, ms) => total + ms, 0)
      metrics.queueUnfinishedSeconds.set({ name }, sumMs / 1000)
      metrics.queueLongestSeconds.set({ name }, longestMs() / 1000)
    },
  }
}

/** Delayed keys. */
function createTimers(scheduler: Scheduler, onDue: (key: string) => void) {
  const timers = new Map<string, { readonly atMs: number; readonly cancel: () => void }>()
  let isShutDown = false
  return {
    set: (key: string, ms: number) => {
      if (isShutDown) return
      const atMs = scheduler.nowMs() + ms
      const current = timers.get(key)
      if (current !== undefined && current.atMs <= atMs) return
      if (current === undefined && timers.size >= KEYS_MAX)
        throw new Error(`more than ${KEYS_MAX} keys are delayed`)
      current?.cancel()
      const cancel = scheduler.after(ms, () => {
        timers.delete(key)
        onDue(key)
      })
      timers.set(key, { atMs, cancel })
    },
    shutDown: () => {
      isShutDown = true
      for (const { cancel } of timers.values()) cancel()
      timers.clear()
    },
  }
}

/** The delay of a failed key: its own back-off, or longer if the shared rate requires it. */
function createFailureDelays(scheduler: Pick<Scheduler, 'nowMs'>) {
  const counts = new Map<string, number>()
  const intervalMs = 1000 / FAILED_PER_SECOND
  /** When the shared rate allows the next retry, without the burst. */
  let dueMs = -Infinity
  return {
    nextMs: (key: string): number => {
      const count = counts.get(key) ?? 0
      counts.set(key, count + 1)
      const nowMs = scheduler.nowMs()
      dueMs = Math.max(dueMs, nowMs) + intervalMs
      const sharedMs = Math.max(0, dueMs - FAILED_BURST * intervalMs - nowMs)
      return Math.max(Math.min(FAILED_MS_FIRST * 2 ** count, FAILED_MS_MAX), sharedMs)
    },
    reset: (key: string): void => {
      counts.delete(key)
    },
  }
}
