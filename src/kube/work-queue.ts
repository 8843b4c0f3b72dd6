// Keys that wait for a worker. A key waits once however often it is added; one that is added while
// a worker has it comes again when that is done, and never to two workers at once.
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
  /** Puts a key in. */
  readonly add: (key: string) => void
  /** The same after a time; of several times for one key the earliest holds. */
  readonly addAfter: (key: string, ms: number) => void
  /** The same after a time that grows with every failure of the key. */
  readonly addFailed: (key: string) => void
  /** The key did not fail: its next failure counts as the first. */
  readonly forget: (key: string) => void
  /** The next key, which must be given to `done`; `undefined` once the queue has ended. */
  readonly take: () => Promise<string | undefined>
  readonly done: (key: string) => void
  /** Ends it: nothing comes in, nothing more comes out. */
  readonly end: () => void
  readonly depth: () => number
  /** How long the worker that is longest at one key has been at it. */
  readonly longestMs: () => number
  /** Notes how long workers have been at their keys. */
  readonly show: () => void
}

/** client-go's: 5 ms, doubled at each failure of a key, and over all keys 10 a second. */
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

/** Makes a queue that shows its state under `name`. */
export function createWorkQueue(deps: QueueDeps): WorkQueue {
  const { name, scheduler, metrics } = deps
  const keys = createKeys(deps)
  const alarms = createAlarms(scheduler, keys.add)
  const failures = createFailureWaits(scheduler)
  return {
    ...keys,
    addAfter: alarms.set,
    addFailed(key) {
      metrics.queueRetries.inc({ name })
      alarms.set(key, failures.nextMs(key))
    },
    forget: failures.forget,
    end() {
      alarms.end()
      keys.end()
    },
  }
}

/** Keys that wait now, and those that workers have. */
function createKeys({ name, scheduler, metrics }: QueueDeps) {
  /** In the order in which they came, with the time of that. */
  const waiting = new Map<string, number>()
  /** With the time at which a worker got them. */
  const processing = new Map<string, number>()
  /** Those that came while a worker had them. */
  const again = new Set<string>()
  const takers: ((key: string | undefined) => void)[] = []
  let hasEnded = false
  const give = (key: string, cameMs: number, taker: (key: string) => void) => {
    const nowMs = scheduler.nowMs()
    metrics.queueWaitSeconds.labels(name).observe((nowMs - cameMs) / 1000)
    processing.set(key, nowMs)
    taker(key)
  }
  const add = (key: string) => {
    if (hasEnded || waiting.has(key) || again.has(key)) return
    if (waiting.size + again.size >= KEYS_MAX) throw new Error(`over ${KEYS_MAX} keys wait`)
    metrics.queueAdds.inc({ name })
    if (processing.has(key)) {
      again.add(key)
      return
    }
    const taker = takers.shift()
    if (taker !== undefined) give(key, scheduler.nowMs(), taker)
    else waiting.set(key, scheduler.nowMs())
    metrics.queueDepth.set({ name }, waiting.size)
  }
  const take = (resolve: (key: string | undefined) => void) => {
    const [next] = waiting
    if (next === undefined) {
      takers.push(resolve)
      return
    }
    const [key, cameMs] = next
    waiting.delete(key)
    metrics.queueDepth.set({ name }, waiting.size)
    give(key, cameMs, resolve)
  }
  const timesMs = () => [...processing.values()].map((begunMs) => scheduler.nowMs() - begunMs)
  const longestMs = () => Math.max(0, ...timesMs())
  return {
    add,
    longestMs,
    take: () => (hasEnded ? Promise.resolve(undefined) : new Promise(take)),
    done(key: string) {
      const begunMs = processing.get(key)
      if (begunMs === undefined) return
      processing.delete(key)
      metrics.queueWorkSeconds.labels(name).observe((scheduler.nowMs() - begunMs) / 1000)
      if (again.delete(key)) add(key)
    },
    end() {
      hasEnded = true
      waiting.clear()
      again.clear()
      for (const taker of takers.splice(0)) taker(undefined)
      metrics.queueDepth.set({ name }, 0)
    },
    depth: () => waiting.size,
    show() {
      const sumMs = timesMs().reduce((total, ms) => total + ms, 0)
      metrics.queueUnfinishedSeconds.set({ name }, sumMs / 1000)
      metrics.queueLongestSeconds.set({ name }, longestMs() / 1000)
    },
  }
}

/** Keys whose time is to come. */
function createAlarms(scheduler: Scheduler, ring: (key: string) => void) {
  const timers = new Map<string, { readonly atMs: number; readonly cancel: () => void }>()
  let hasEnded = false
  return {
    set: (key: string, ms: number) => {
      if (hasEnded) return
      const atMs = scheduler.nowMs() + ms
      const set = timers.get(key)
      if (set !== undefined && set.atMs <= atMs) return
      if (set === undefined && timers.size >= KEYS_MAX)
        throw new Error(`over ${KEYS_MAX} keys wait for their time`)
      set?.cancel()
      const cancel = scheduler.after(ms, () => {
        timers.delete(key)
        ring(key)
      })
      timers.set(key, { atMs, cancel })
    },
    end: () => {
      hasEnded = true
      for (const { cancel } of timers.values()) cancel()
      timers.clear()
    },
  }
}

/** How long a key that failed waits: by its own failures, and by those of all. */
function createFailureWaits(scheduler: Pick<Scheduler, 'nowMs'>) {
  const counts = new Map<string, number>()
  const intervalMs = 1000 / FAILED_PER_SECOND
  /** When the next failure of all would be on schedule. */
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
    forget: (key: string): void => {
      counts.delete(key)
    },
  }
}
