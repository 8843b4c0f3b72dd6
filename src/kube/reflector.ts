// Keeps a cache of objects as the API server has them: lists them all, watches from there, and goes
// on from where a watch broke off; lists anew only where the server no longer knows that place.
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { type BackOffBounds, createBackOff, WATCH_BACK_OFF } from './back-off.ts'
import { errorOfStatus, KubeError } from './kube-error.ts'
import type { ObjectCache } from './object-cache.ts'
import { type KubeObject, pathOf, type Resource } from './objects.ts'
import { createPulse } from './pulse.ts'
import { pauseOn, type Scheduler } from './scheduler.ts'

/** What is reflected, and where. */
export interface ReflectorOptions<T extends KubeObject> {
  readonly api: KubeApi
  readonly resource: Resource
  readonly namespace: string
  readonly labelSelector?: string
  readonly cache: Pick<ObjectCache<T>, 'replace' | 'put' | 'remove' | 'size'>
  /** What is kept of an object as it came, which has no `managedFields` any more. */
  readonly trim: (object: KubeObject) => T
  readonly scheduler: Scheduler
  /** From 0 to 1. */
  readonly random: () => number
  readonly metrics: Pick<Metrics, 'watchFailures' | 'watchLists' | 'watchedObjects'>
  readonly log: Pick<Log, 'debug' | 'info' | 'warn'>
  /** Told of each failure, and with `undefined` when it works again. */
  readonly onState?: (failure: KubeError | undefined) => void
  /** @default 90_000: bookmarks come about every minute */
  readonly idleMsMax?: number
  readonly backOff?: BackOffBounds
}

/** A cache that is being kept. */
export interface Reflector {
  /** Keeps it until `signal` aborts. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** Whether all objects have been seen once. */
  readonly hasSynced: () => boolean
  /** Whether it hangs, by a defect: pages, lines and pauses all have their time. */
  readonly isStuck: () => boolean
}

const PAGE_OBJECTS = 500
const OBJECTS_MAX = 50_000
const LIST_MS_MAX = 60_000
const IDLE_MS_MAX = 90_000
const WATCH_SECONDS_MIN = 300
/** No page, no line and no new turn for so long: it hangs. */
const TURN_MS_MAX = 300_000
/** A watch that ends sooner, and tells nothing, has failed. */
const WATCH_MS_MIN = 1000
/** After so many watches that the server broke off and that told nothing, all is listed anew. */
const BROKEN_WATCHES_MAX = 5

/** The place from which a watch goes on. */
interface Place {
  version: string | undefined
}

/** Makes a reflector. */
export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector {
  const { scheduler, random, metrics, log, onState } = options
  const { plural: resource } = options.resource
  const backOff = createBackOff(options.backOff ?? WATCH_BACK_OFF, { scheduler, random })
  const place: Place = { version: undefined }
  const pulse = createPulse(scheduler, TURN_MS_MAX)
  let hasSynced = false
  let broken = 0
  const round = async (signal: AbortSignal) => {
    if (place.version === undefined) {
      place.version = await listAll({ ...options, onPage: pulse.beat }, signal)
      hasSynced = true
      broken = 0
      metrics.watchLists.inc({ resource })
      onState?.(undefined)
    }
    if (signal.aborted) return
    await watchFrom(options, place, {
      signal,
      onOpen: () => onState?.(undefined),
      onTold: () => {
        broken = 0
        pulse.beat()
      },
    })
  }
  const noteFailure = (error: unknown) => {
    if (!(error instanceof KubeError)) throw error
    if (error.reason !== 'Unreachable' && error.status !== 429) broken++
    if (losesPlace(error) || broken > BROKEN_WATCHES_MAX) place.version = undefined
    metrics.watchFailures.inc({ resource, why: whyOf(error) })
    log.debug({ err: error, resource, namespace: options.namespace }, 'a watch broke off')
    onState?.(error)
    return Math.max(backOff.nextMs(), error.retryAfterMs ?? 0)
  }
  return {
    hasSynced: () => hasSynced,
    isStuck: pulse.isLate,
    async run(signal) {
      const isEnding = () => signal.aborted
      while (!isEnding()) {
        pulse.beat()
        try {
          await round(signal)
        } catch (error) {
          if (!isEnding()) await pauseOn(scheduler, noteFailure(error), signal)
        } finally {
          metrics.watchedObjects.set({ resource }, options.cache.size())
        }
      }
      pulse.rest()
    },
  }
}

/** Whether the server no longer knows the place, or refuses it: only a list helps then. */
function losesPlace({ status, reason }: KubeError): boolean {
  return reason === 'Refused' || (status >= 400 && status < 500 && status !== 429)
}

function whyOf({ status, reason }: KubeError): string {
  return status === 0 ? reason.toLowerCase() : String(status)
}

/** What is listed, and who is told of each page. */
interface Listing<T extends KubeObject> extends ReflectorOptions<T> {
  readonly onPage: () => void
}

/** Reads all of them, page by page, into the cache; gives the place where a watch goes on. */
async function listAll<T extends KubeObject>(
  options: Listing<T>,
  signal: AbortSignal,
): Promise<string> {
  try {
    return await listPages(options, { signal, limit: PAGE_OBJECTS })
  } catch (error) {
    // The pages took longer than the server remembers: all at once, then.
    if (!(error instanceof KubeError) || error.status !== 410) throw error
    return listPages(options, { signal, limit: undefined })
  }
}

async function listPages<T extends KubeObject>(
  options: Listing<T>,
  { signal, limit }: { signal: AbortSignal; limit: number | undefined },
): Promise<string> {
  const { api, resource, namespace, labelSelector, trim } = options
  const objects: T[] = []
  let token = ''
  do {
    const query = {
      ...(labelSelector !== undefined && { labelSelector }),
      ...(limit !== undefined && { limit: String(limit) }),
      ...(token !== '' && { continue: token }),
    }
    const path = pathOf(resource, { namespace })
    const page = await api.call({ method: 'GET', path, query, msMax: LIST_MS_MAX, signal })
    options.onPage()
    const { items, metadata } = page as {
      items?: readonly KubeObject[] | null
      metadata?: { resourceVersion?: string; continue?: string }
    }
    for (const item of items ?? []) objects.push(trim(withoutManagedFields(item)))
    if (objects.length > OBJECTS_MAX) throw refused(`there are over ${OBJECTS_MAX} objects`)
    token = metadata?.continue ?? ''
    if (token === '') {
      if (metadata?.resourceVersion === undefined) throw refused('a list says no version')
      options.cache.replace(objects)
      return metadata.resourceVersion
    }
  } while (!signal.aborted)
  throw refused('stopped')
}

interface WatchEvent {
  readonly type: string
  readonly object: KubeObject
}

/** Watches until the server ends it. Throws KubeError where it breaks off. */
async function watchFrom<T extends KubeObject>(
  options: ReflectorOptions<T>,
  place: Place,
  { signal, onOpen, onTold }: { signal: AbortSignal; onOpen: () => void; onTold: () => void },
): Promise<void> {
  const { api, resource, namespace, labelSelector, scheduler, random, idleMsMax } = options
  const begunMs = scheduler.nowMs()
  let isTold = false
  const lines = api.lines({
    path: pathOf(resource, { namespace }),
    query: {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: place.version ?? '',
      timeoutSeconds: String(Math.round(WATCH_SECONDS_MIN * (1 + random()))),
      ...(labelSelector !== undefined && { labelSelector }),
    },
    idleMsMax: idleMsMax ?? IDLE_MS_MAX,
    signal,
    onOpen,
  })
  for await (const line of lines) {
    place.version = take(options, parseEvent(line))
    isTold = true
    onTold()
  }
  if (!isTold && scheduler.nowMs() - begunMs < WATCH_MS_MIN)
    throw new KubeError('a watch ended at once', { status: 0, reason: 'Torn' })
}

/** Takes an event into the cache; gives the place after it. Throws KubeError. */
function take<T extends KubeObject>(
  { cache, trim }: ReflectorOptions<T>,
  { type, object }: WatchEvent,
): string {
  if (type === 'ERROR') {
    const error = errorOfStatus(object, { status: 0 })
    // Whatever it is, the events between here and the next watch are not certain.
    const { status, retryAfterMs, message } = error
    throw new KubeError(message, { status, reason: 'Refused', retryAfterMs, cause: error })
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
  } catch (cause) {
    throw new KubeError('a line of a watch is torn', { status: 0, reason: 'Torn', cause })
  }
  throw new KubeError('a line of a watch is no event', { status: 0, reason: 'Torn' })
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields, ...metadata } = object.metadata as KubeObject['metadata'] & {
    managedFields?: unknown
  }
  return managedFields === undefined ? object : { ...object, metadata }
}

function refused(message: string): KubeError {
  return new KubeError(message, { status: 0, reason: 'Refused' })
}
