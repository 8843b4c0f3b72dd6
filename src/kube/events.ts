// Events for `kubectl describe`. What is said again within minutes is counted in the event that is
// there; what would flood the API server is dropped and counted. Nobody waits for an event.
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { microTime } from './conditions.ts'
import { isStatus } from './kube-error.ts'
import { pathOf } from './objects.ts'

/** What an event is about. */
interface Regarding {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** What is to be told. */
export interface EventTold {
  readonly regarding: Regarding
  readonly type: 'Normal' | 'Warning'
  /** In one word. */
  readonly reason: string
  /** What the controller did, in one word. */
  readonly action: string
  readonly note: string
}

/** Tells events. */
export interface EventRecorder {
  readonly tell: (event: EventTold) => void
  /** Resolves once those told so far are written or given up. */
  readonly flush: () => Promise<void>
}

/** Said again within this time, it is the same event once more. */
const SERIES_MS = 10 * 60_000
/** A count is written down so often at most. */
const SERIES_WRITE_MS = 60_000
const SERIES_MAX = 2000
const WAITING_MAX = 500
/** Of one object: so many at once, and then one more in so long; as client-go has it. */
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
}

/** Makes a recorder; `instance` is the process in the events. */
export function createEventRecorder(deps: {
  readonly api: Pick<KubeApi, 'call'>
  readonly controller: string
  readonly instance: string
  /** Monotonic: decides what is counted and what is dropped. */
  readonly nowMs: () => number
  /** For what is written in the events, and decides nothing. */
  readonly wallMs: () => number
  readonly metrics: Pick<Metrics, 'eventsDropped'>
  readonly log: Pick<Log, 'debug'>
  /** Asked before each write: who leads no more tells nothing. */
  readonly mayWrite: () => boolean
}): EventRecorder {
  const { api, wallMs, metrics, controller, instance } = deps
  const series = new LRUCache<string, Series>({ max: SERIES_MAX })
  const budgets = new LRUCache<string, { dueMs: number }>({ max: SERIES_MAX })
  const drop = (why: string) => {
    metrics.eventsDropped.inc({ why })
  }
  const writes = createWrites({ ...deps, drop })
  const { enqueue } = writes
  const begin = (key: string, event: EventTold, nowMs: number) => {
    if (!spend(budgets, event.regarding.uid, nowMs)) {
      drop('too-many')
      return
    }
    const atMs = wallMs()
    const name = nameOf(key, event, atMs)
    series.set(key, { name, count: 1, lastAtMs: nowMs, writtenAtMs: nowMs })
    const path = pathOf(EVENTS, { namespace: event.regarding.namespace })
    const body = renderEvent(event, { name, atMs, controller, instance })
    enqueue(() =>
      api.call({ method: 'POST', path, body, msMax: CALL_MS_MAX }).catch((error: unknown) => {
        if (!isStatus(error, 409)) throw error // written before, by a call whose answer was lost
      }),
    )
  }
  return {
    tell(event) {
      const nowMs = deps.nowMs()
      const key = [event.regarding.uid, event.type, event.reason, event.action, event.note].join()
      const seen = series.get(key)
      if (seen === undefined || nowMs - seen.lastAtMs > SERIES_MS) {
        begin(key, event, nowMs)
        return
      }
      seen.count++
      seen.lastAtMs = nowMs
      if (nowMs - seen.writtenAtMs < SERIES_WRITE_MS) return
      seen.writtenAtMs = nowMs
      const { name, count } = seen
      const path = pathOf(EVENTS, { namespace: event.regarding.namespace, name })
      const body = { series: { count, lastObservedTime: microTime(wallMs()) } }
      const contentType = 'application/merge-patch+json'
      enqueue(() => api.call({ method: 'PATCH', path, body, contentType, msMax: CALL_MS_MAX }))
    },
    flush: writes.flush,
  }
}

/** Writes one after the other, as many as may wait. */
function createWrites(deps: {
  readonly mayWrite: () => boolean
  readonly drop: (why: string) => void
  readonly log: Pick<Log, 'debug'>
}) {
  const { mayWrite, drop, log } = deps
  let waiting = 0
  let tail = Promise.resolve()
  const attempt = async (write: () => Promise<unknown>) => {
    try {
      if (mayWrite()) await write()
      else drop('not-leading')
    } catch (err) {
      drop('failed')
      log.debug({ err }, 'an event was not written')
    } finally {
      waiting--
    }
  }
  return {
    enqueue: (write: () => Promise<unknown>) => {
      if (waiting >= WAITING_MAX) {
        drop('queue-full')
        return
      }
      waiting++
      tail = tail.then(() => attempt(write))
    },
    flush: () => tail,
  }
}

/** Whether an object may have one more event. */
function spend(budgets: LRUCache<string, { dueMs: number }>, uid: string, nowMs: number): boolean {
  const budget = budgets.get(uid) ?? { dueMs: 0 }
  const dueMs = Math.max(budget.dueMs, nowMs) + OBJECT_REFILL_MS
  if (dueMs - nowMs > OBJECT_BURST * OBJECT_REFILL_MS) return false
  budgets.set(uid, { dueMs })
  return true
}

/** The same event of the same process gets the same name, so that it is written once. */
function nameOf(key: string, { regarding }: EventTold, atMs: number): string {
  const hash = createHash('sha256').update(`${key} ${atMs}`).digest('hex').slice(0, 16)
  return `${regarding.name.slice(0, 200)}.${hash}`
}

function renderEvent(
  { regarding, type, reason, action, note }: EventTold,
  given: { name: string; atMs: number; controller: string; instance: string },
) {
  const { name, atMs, controller, instance } = given
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: regarding.namespace },
    eventTime: microTime(atMs),
    regarding,
    type,
    reason,
    action,
    note: note.slice(0, NOTE_CHARACTERS_MAX),
    reportingController: controller,
    reportingInstance: instance.slice(0, 128),
  }
}
