// Events for `kubectl describe`. A duplicate event increments the count of the existing one; events
// that would flood the API server are dropped and counted. Emitting an event never blocks.
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { formatMicroTime } from './conditions.ts'
import { hasStatus } from './kube-error.ts'
import { pathOf } from './objects.ts'

/** The object that an event is about. */
interface Regarding {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** The fields of an event. */
export interface EventInput {
  readonly regarding: Regarding
  readonly type: 'Normal' | 'Warning'
  /** One word in UpperCamelCase, such as `RefillFailed`. */
  readonly reason: string
  /** The controller's action, one word in UpperCamelCase. */
  readonly action: string
  readonly note: string
}

/** Emits events. */
export interface EventRecorder {
  readonly emit: (event: EventInput) => void
  /** Resolves once the queued writes are done or dropped; a count is queued only when it is due. */
  readonly flush: () => Promise<void>
}

/** A duplicate event within this time belongs to the same series. */
const SERIES_MS = 10 * 60_000
/** The minimum interval between two writes of a series' count. */
const SERIES_WRITE_MS = 60_000
/** Bounds of the series in memory, and of the writes that wait. */
const SERIES_MAX = 2000
const PENDING_MAX = 500
/** client-go's token bucket per object: its size, and the time until a token is added. */
const OBJECT_BURST = 25
const OBJECT_REFILL_MS = 5 * 60_000
const NOTE_CHARACTERS_MAX = 1000
const CALL_MS_MAX = 5000
const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' } as const

interface Series {
  readonly name: string
  readonly event: EventInput
  count: number
  lastAtMs: number
  writtenAtMs: number
  /** Whether the event exists, as far as responses show; if not, the next write creates it. */
  isCreated: boolean
}

/** Creates a recorder; `instance` identifies the process in the events. */
export function createEventRecorder(deps: {
  readonly api: Pick<KubeApi, 'call'>
  readonly controller: string
  readonly instance: string
  /** Monotonic: decides which events are counted and which are dropped. */
  readonly nowMs: () => number
  /** Unix time, only for the timestamps in the events. */
  readonly wallMs: () => number
  readonly metrics: Pick<Metrics, 'eventsDropped'>
  readonly log: Pick<Log, 'debug'>
  /** Checked before each write: a replica that lost leadership writes no events. */
  readonly mayWrite: () => boolean
}): EventRecorder {
  const { api, wallMs, metrics } = deps
  const allSeries = new LRUCache<string, Series>({ max: SERIES_MAX })
  const takeToken = createBuckets()
  const drop = (reason: string) => {
    metrics.eventsDropped.inc({ reason })
  }
  const queue = createWriteQueue({ ...deps, drop })
  const write = (series: Series) => {
    const { count } = series
    const atMs = wallMs()
    queue.enqueue(async () => {
      const { isCreated } = series
      try {
        await api.call(renderWrite({ ...series, count }, { ...deps, atMs }))
        series.isCreated = true
      } catch (error) {
        const exists = hasStatus(error, 409) // the response to an earlier write was lost
        series.isCreated = exists || (isCreated && !hasStatus(error, 404))
        if (isCreated || !exists) throw error
      }
    })
  }
  return {
    emit(event) {
      const nowMs = deps.nowMs()
      const { uid } = event.regarding
      const key = [uid, event.type, event.reason, event.action, event.note].join()
      let series = allSeries.get(key)
      if (series === undefined || nowMs - series.lastAtMs > SERIES_MS) {
        if (!takeToken(uid, nowMs)) {
          drop('too-many')
          return
        }
        const name = nameOf(key, event, wallMs())
        series = {
          name,
          event,
          count: 0,
          lastAtMs: nowMs,
          writtenAtMs: -Infinity,
          isCreated: false,
        }
        allSeries.set(key, series)
      }
      series.count++
      series.lastAtMs = nowMs
      if (nowMs - series.writtenAtMs < SERIES_WRITE_MS) return
      series.writtenAtMs = nowMs
      write(series)
    },
    flush: queue.flush,
  }
}

/** Runs writes one at a time, in order; the queue is bounded. */
function createWriteQueue(deps: {
  readonly mayWrite: () => boolean
  readonly drop: (reason: string) => void
  readonly log: Pick<Log, 'debug'>
}) {
  const { mayWrite, drop, log } = deps
  let pending = 0
  let tail = Promise.resolve()
  const attempt = async (write: () => Promise<unknown>) => {
    try {
      if (mayWrite()) await write()
      else drop('not-leading')
    } catch (err) {
      drop('failed')
      log.debug({ err }, 'event not written')
    } finally {
      pending--
    }
  }
  return {
    enqueue: (write: () => Promise<unknown>) => {
      if (pending >= PENDING_MAX) {
        drop('queue-full')
        return
      }
      pending++
      tail = tail.then(() => attempt(write))
    },
    flush: () => tail,
  }
}

/** Creates a function that takes a token of an object; it returns false if none is left. */
function createBuckets() {
  /** By uid: the time at which the bucket will be full. */
  const fullAtMs = new LRUCache<string, number>({ max: SERIES_MAX })
  return (uid: string, nowMs: number): boolean => {
    const nextMs = Math.max(fullAtMs.get(uid) ?? 0, nowMs) + OBJECT_REFILL_MS
    if (nextMs - nowMs > OBJECT_BURST * OBJECT_REFILL_MS) return false
    fullAtMs.set(uid, nextMs)
    return true
  }
}

/** The name of a new event; a retried write uses the same one, so the event is created once. */
function nameOf(key: string, { regarding }: EventInput, atMs: number): string {
  const hash = createHash('sha256').update(`${key} ${atMs}`).digest('hex').slice(0, 16)
  return `${regarding.name.slice(0, 200)}.${hash}`
}

/** Renders the call that creates an event, or updates its count. */
function renderWrite(
  { name, event, count, isCreated }: Series,
  { atMs, controller, instance }: { atMs: number; controller: string; instance: string },
) {
  const { namespace } = event.regarding
  const eventTime = formatMicroTime(atMs)
  const series = { count, lastObservedTime: eventTime }
  const msMax = CALL_MS_MAX
  if (isCreated) {
    const path = pathOf(EVENTS, { namespace, name })
    const contentType = 'application/merge-patch+json'
    return { method: 'PATCH', path, body: { series }, contentType, msMax } as const
  }
  const body = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace },
    eventTime,
    ...event,
    note: event.note.slice(0, NOTE_CHARACTERS_MAX),
    reportingController: controller,
    reportingInstance: instance.slice(0, 128),
    ...(count > 1 && { series }),
  }
  return { method: 'POST', path: pathOf(EVENTS, { namespace }), body, msMax } as const
}
