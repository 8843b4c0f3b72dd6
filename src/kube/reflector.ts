// Keeps a cache in sync with the API server: lists all objects, watches from that version, and
// resumes broken watches; relists if the server has lost that version, or if watches keep failing.
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { type BackOffBounds, createBackOff, WATCH_BACK_OFF } from './back-off.ts'
import { errorOfStatus, KubeError } from './kube-error.ts'
import {
  listAll,
  type ListOptions,
  metadataType,
  selectorsOf,
  withoutManagedFields,
} from './list-all.ts'
import type { ObjectCache } from './object-cache.ts'
import { type KubeObject, pathOf } from './objects.ts'
import { createHeartbeat, type Heartbeat } from './heartbeat.ts'
import { pauseFor, type Scheduler } from './scheduler.ts'

type CacheMetrics = Pick<
  Metrics,
  'watchFailures' | 'watchLists' | 'watchedObjects' | 'failingCaches'
>

/** The resource to reflect, and the cache to fill. */
export interface ReflectorOptions<T extends KubeObject> extends Omit<ListOptions<T>, 'onPage'> {
  readonly api: KubeApi
  readonly cache: Pick<ObjectCache<T>, 'replace' | 'put' | 'remove' | 'size'>
  readonly scheduler: Scheduler
  /** From 0 to 1. */
  readonly random: () => number
  readonly metrics: CacheMetrics
  readonly log: Pick<Log, 'debug' | 'info' | 'warn'>
  /**
   * Called with `undefined` after each list and each opened watch, and with each failure, unless an
   * open watch received no data.
   */
  readonly onState?: (failure: KubeError | undefined) => void
  /**
   * Maximum time of a watch without data. @default 90_000: bookmarks arrive about every minute,
   * unless no object of the kind changes and etcd does not report its progress
   */
  readonly idleMsMax?: number
  readonly backOff?: BackOffBounds
  /** Starts a list, so that reflectors that share this function take turns. @default immediately */
  readonly inTurn?: (list: () => Promise<string>) => Promise<string>
}

/** Keeps one cache in sync. */
export interface Reflector {
  /** Runs until `signal` aborts. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** Relists; resolves to true once a list that started after this call is in the cache. */
  readonly refresh: () => Promise<boolean>
  /** Cancels a pending `refresh`, which resolves to false; the watch resumes. */
  readonly cancelRefresh: () => void
  /** Whether all objects have been listed at least once. */
  readonly hasSynced: () => boolean
  /** Whether the loop hangs: because of a defect, or in `ClusterAccess.read`. */
  readonly isStuck: () => boolean
}

const IDLE_MS_MAX = 90_000
const WATCH_SECONDS_MIN = 300
/** After this time without a page, a line or a new iteration, the reflector counts as stuck. */
const ITERATION_MS_MAX = 300_000
/** A watch that closes sooner without an event has failed. */
const WATCH_MS_MIN = 1000
/** After more consecutive broken watches without an event, all objects are relisted. */
const BROKEN_WATCHES_MAX = 5

interface ResumePoint {
  /** The resource version from which the next watch starts; `undefined`: list first. */
  version: string | undefined
  /** Whether the current iteration has opened its watch. */
  wasOpen: boolean
}

/** Creates a reflector. */
export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector {
  const { scheduler, random, metrics, log } = options
  const { plural: resource } = options.resource
  const { onState, recordObjects } = createRecord(options)
  const backOff = createBackOff(options.backOff ?? WATCH_BACK_OFF, { scheduler, random })
  const resume: ResumePoint = { version: undefined, wasOpen: false }
  const heartbeat = createHeartbeat(scheduler, ITERATION_MS_MAX)
  const refresh = createRefresh()
  let hasSynced = false
  let brokenWatches = 0
  const list = async (signal: AbortSignal) => {
    const start = () => {
      heartbeat.update()
      return listAll({ ...options, onPage: heartbeat.update }, signal)
    }
    resume.version = await (options.inTurn?.(start) ?? start())
    hasSynced = true
    if (signal.aborted) return // by a refresh, which requires a later list
    refresh.complete(true)
    brokenWatches = 0
    metrics.watchLists.inc({ resource })
    onState(undefined)
  }
  const listAndWatch = async (signal: AbortSignal) => {
    resume.wasOpen = false
    if (resume.version === undefined || refresh.isPending()) await list(signal)
    if (signal.aborted) return
    await watchFrom(options, resume, {
      signal,
      onOpen: () => {
        onState(undefined)
      },
      onEvent: () => {
        brokenWatches = 0
        recordObjects()
        heartbeat.update()
      },
    })
  }
  const recordFailure = (error: unknown) => {
    if (!(error instanceof KubeError)) throw error
    // A failed refresh keeps the version: if it is cancelled, the watch resumes from there.
    if (!refresh.isPending()) {
      if (error.reason !== 'Unreachable' && error.status !== 429) brokenWatches++
      if (mustRelist(error) || brokenWatches > BROKEN_WATCHES_MAX) resume.version = undefined
    }
    metrics.watchFailures.inc({ resource, reason: reasonLabelOf(error) })
    log.debug({ err: error, resource, namespace: options.namespace }, 'list or watch failed')
    // An open watch without data may mean that nothing changes: the next watch shows a failure.
    if (!resume.wasOpen || error.reason !== 'Timeout') onState(error)
    return Math.max(backOff.nextMs(), error.retryAfterMs ?? 0)
  }
  const loop = createLoop(heartbeat, (signal) =>
    listAndWatch(signal).catch(async (error: unknown) => {
      if (!signal.aborted) await pauseFor(scheduler, recordFailure(error), signal)
    }),
  )
  return {
    run: (signal) => loop.run(signal),
    refresh() {
      loop.restart()
      return refresh.start()
    },
    cancelRefresh() {
      refresh.complete(false)
    },
    hasSynced: () => hasSynced,
    isStuck: heartbeat.isStale,
  }
}

/** A refresh: pending until a list completes it, or it is cancelled. */
function createRefresh() {
  let pending: PromiseWithResolvers<boolean> | undefined
  return {
    isPending: () => pending !== undefined,
    start() {
      pending ??= Promise.withResolvers()
      return pending.promise
    },
    complete(isRelisted: boolean) {
      pending?.resolve(isRelisted)
      pending = undefined
    },
  }
}

/** Calls `iterate` until the signal of `run` aborts; `restart` aborts only the current call. */
function createLoop(heartbeat: Heartbeat, iterate: (signal: AbortSignal) => Promise<void>) {
  let current = new AbortController()
  const restart = () => {
    current.abort()
  }
  return {
    restart,
    async run(signal: AbortSignal) {
      const isStopping = () => signal.aborted
      signal.addEventListener('abort', restart)
      while (!isStopping()) {
        heartbeat.update()
        current = new AbortController()
        await iterate(current.signal)
      }
      heartbeat.stop()
    },
  }
}

/** Adds the values of one cache to gauges that several caches of a resource share. */
function createRecord<T extends KubeObject>(options: ReflectorOptions<T>) {
  const { metrics, cache, onState } = options
  const { plural: resource } = options.resource
  const share = (gauge: CacheMetrics['watchedObjects']) => {
    let before = 0
    return (value: number) => {
      gauge.inc({ resource }, value - before)
      before = value
    }
  }
  const [failing, objects] = [share(metrics.failingCaches), share(metrics.watchedObjects)]
  const recordObjects = () => {
    objects(cache.size())
  }
  failing(0)
  return {
    recordObjects,
    onState: (failure: KubeError | undefined) => {
      failing(failure === undefined ? 0 : 1)
      recordObjects()
      onState?.(failure)
    },
  }
}

/** Whether the server rejected the call or no longer has the version: a list is required. */
function mustRelist({ status, reason }: KubeError): boolean {
  return reason === 'RelistRequired' || (status >= 400 && status < 500 && status !== 429)
}

/** The label value of a failure: the HTTP status, or the reason if there is none. */
function reasonLabelOf({ status, reason }: KubeError): string {
  return status === 0 ? reason.toLowerCase() : String(status)
}

interface WatchEvent {
  readonly type: string
  readonly object: KubeObject
}

/** Watches until the server closes the watch. Throws KubeError if the watch fails. */
async function watchFrom<T extends KubeObject>(
  options: ReflectorOptions<T>,
  resume: ResumePoint,
  { signal, onOpen, onEvent }: { signal: AbortSignal; onOpen: () => void; onEvent: () => void },
): Promise<void> {
  const { api, resource, namespace, scheduler, random, idleMsMax } = options
  const startedMs = scheduler.nowMs()
  let hasEvent = false
  const lines = api.lines({
    path: pathOf(resource, { namespace }),
    query: {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: resume.version ?? '',
      timeoutSeconds: String(Math.round(WATCH_SECONDS_MIN * (1 + random()))),
      ...selectorsOf(options),
    },
    ...(options.isMetadataOnly === true && { accept: metadataType('') }),
    idleMsMax: idleMsMax ?? IDLE_MS_MAX,
    signal,
    onOpen: () => {
      resume.wasOpen = true
      onOpen()
    },
  })
  for await (const line of lines) {
    resume.version = applyEvent(options, parseEvent(line))
    hasEvent = true
    onEvent()
  }
  if (!hasEvent && scheduler.nowMs() - startedMs < WATCH_MS_MIN)
    throw new KubeError('a watch closed without an event', { status: 0, reason: 'InvalidResponse' })
}

/** Applies an event to the cache; returns the version after it. Throws KubeError. */
function applyEvent<T extends KubeObject>(
  { cache, trim }: ReflectorOptions<T>,
  { type, object }: WatchEvent,
): string {
  if (type === 'ERROR') {
    const error = errorOfStatus(object, { status: 0 })
    // Any error may have lost events, so the next watch must not resume here.
    const { status, retryAfterMs, message } = error
    throw new KubeError(message, { status, reason: 'RelistRequired', retryAfterMs, cause: error })
  }
  if (type === 'DELETED') cache.remove(trim(object))
  else if (type === 'ADDED' || type === 'MODIFIED') cache.put(trim(withoutManagedFields(object)))
  return object.metadata.resourceVersion
}

function parseEvent(line: string): WatchEvent {
  try {
    const event = JSON.parse(line) as WatchEvent
    const isEvent = typeof event.type === 'string' && typeof event.object === 'object'
    if (isEvent && (event.type === 'ERROR' || event.object.metadata.resourceVersion !== ''))
      return event
  } catch {
    // Without the cause, whose message contains a piece of the line, which may be a Secret.
    throw new KubeError('a line of a watch is not JSON, or not an event', {
      status: 0,
      reason: 'InvalidResponse',
    })
  }
  throw new KubeError('a line of a watch is not an event', { status: 0, reason: 'InvalidResponse' })
}
