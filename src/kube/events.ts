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
  /** Resolves once the events emitted so far are written or dropped. */
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
  count: number
  lastAtMs: number
  writtenAtMs: number
  /** Whether the last write shows that the event exists: the next one updates or creates it. */
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
  const { api, wallMs, metrics, controller, instance } = deps
  const series = new LRUCache<string, Series>({ max: SERIES_MAX })
  const buckets = new LRUCache<string, Bucket>({ max: SERIES_MAX })
  const drop = (reason: string) => {
    metrics.eventsDropped.inc({ reason })
  }
  const queue = createWriteQueue({ ...deps, drop })
  const { enqueue } = queue
  const write = (event: EventInput, current: Series) => {
    const { name, count } = current
    const atMs = wallMs()
    enqueue(async () => {
      const { isCreated } = current
      const source = { name, count, isCreated, atMs, controller, instance }
      try {
        await api.call(renderWrite(event, source))
        current.isCreated = true
      } catch (error) {
        const exists = hasStatus(error, 409) // the response to an earlier write was lost
        current.isCreated = exists || (isCreated && !hasStatus(error, 404))
        if (isCreated || !exists) throw error
      }
    })
  }
  return {
    emit(event) {
      const nowMs = deps.nowMs()
      const key = [event.regarding.uid, event.type, event.reason, event.action, event.note].join()
      const current = series.get(key)
      if (current === undefined || nowMs - current.lastAtMs > SERIES_MS) {
        if (!takeToken(buckets, event.regarding.uid, nowMs)) {
          drop('too-many')
          return
        }
        const name = nameOf(key, event, wallMs())
        const times = { lastAtMs: nowMs, writtenAtMs: nowMs }
        const started = { name, count: 1, ...times, isCreated: false }
        series.set(key, started)
        write(event, started)
        return
      }
      current.count++
      current.lastAtMs = nowMs
      if (nowMs - current.writtenAtMs < SERIES_WRITE_MS) return
      current.writtenAtMs = nowMs
      write(event, current)
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

/** A token bucket, as the time at which it will be full. */
interface Bucket {
  readonly fullAtMs: number
}

/** Takes a token from an object's bucket; returns false if it is empty. */
function takeToken(buckets: LRUCache<string, Bucket>, uid: string, nowMs: number): boolean {
  const bucket = buckets.get(uid) ?? { fullAtMs: 0 }
  const fullAtMs = Math.max(bucket.fullAtMs, nowMs) + OBJECT_REFILL_MS
  if (fullAtMs - nowMs > OBJECT_BURST * OBJECT_REFILL_MS) return false
  buckets.set(uid, { fullAtMs })
  return true
}

/** The name of a new event; a retried write uses the same one, so the event is created once. */
function nameOf(key: string, { regarding }: EventInput, atMs: number): string {
  const hash = createHash('sha256').update(`${key} ${atMs}`).digest('hex').slice(0, 16)
  return `${regarding.name.slice(0, 200)}.${hash}`
}

/** Renders the call that creates an event, or updates its count. */
function renderWrite(
  event: EventInput,
  source: Pick<Series, 'name' | 'count' | 'isCreated'> & EventSource,
) {
  const { name, count, isCreated, atMs } = source
  const { namespace } = event.regarding
  const series = { count, lastObservedTime: formatMicroTime(atMs) }
  const msMax = CALL_MS_MAX
  if (isCreated) {
    const path = pathOf(EVENTS, { namespace, name })
    const contentType = 'application/merge-patch+json'
    return { method: 'PATCH', path, body: { series }, contentType, msMax } as const
  }
  const body = { ...renderEvent(event, source), ...(count > 1 && { series }) }
  return { method: 'POST', path: pathOf(EVENTS, { namespace }), body, msMax } as const
}

interface EventSource {
  readonly name: string
  readonly atMs: number
  readonly controller: string
  readonly instance: string
}

function renderEvent({ regarding, type, reason, action, note }: EventInput, source: EventSource) {
  const { name, atMs, controller, instance } = source
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: regarding.namespace },
    eventTime: formatMicroTime(atMs),
    regarding,
    type,
    reason,
    action,
    note: note.slice(0, NOTE_CHARACTERS_MAX),
    reportingController: controller,
    reportingInstance: instance.slice(0, 128),
  }
}
