// Watches one kind of object in several namespaces, each with a cache of its own.
import type { KubeError } from '../kube-error.ts'
import { type Change, createObjectCache, type ObjectCache } from '../object-cache.ts'
import type { KubeObject } from '../objects.ts'
import { createReflector, type ReflectorOptions } from '../reflector.ts'
import { completesWithin, type Scheduler, untilAborted } from '../scheduler.ts'

/** Dependencies of the watches, and what they watch. */
export interface WatchNamespacesOptions<T extends KubeObject> extends Omit<
  ReflectorOptions<T>,
  'namespace' | 'cache' | 'onState' | 'inTurn'
> {
  readonly namespaces: readonly string[]
  /** Called for each change of an object. */
  readonly onChange: (change: Change<T>) => void
  /** Called after each list and each opened watch of a namespace, and with each `failure`. */
  readonly onState: (resource: string, failure: KubeError | undefined) => void
}

/** The watches of all namespaces. */
export interface NamespaceWatch<T extends KubeObject> {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /**
   * Relists all namespaces; resolves to those that have not been relisted after `ms`, or when
   * `signal` aborts. Their watches are resumed.
   */
  readonly refresh: (ms: number, signal: AbortSignal) => Promise<readonly string[]>
  /** The namespaces that have not been listed. */
  readonly unsynced: () => readonly string[]
  /** The objects of all namespaces, without those that are being deleted. */
  readonly list: () => readonly T[]
  /** The same objects, of one namespace. */
  readonly listIn: (namespace: string) => readonly T[]
  /** The cache of a namespace, which also has the objects that are being deleted. */
  readonly cacheOf: (namespace: string) => ObjectCache<T> | undefined
  /** Whether a watch hangs. */
  readonly isStuck: () => boolean
}

/**
 * Namespaces are listed one after the other, because a page is in memory several times. A list that
 * takes longer than this no longer delays the next.
 */
const TURN_MS_MAX = 2000

/** Creates the watches. */
export function watchNamespaces<T extends KubeObject>(
  options: WatchNamespacesOptions<T>,
): NamespaceWatch<T> {
  const { namespaces, onChange, onState, ...reflectorOptions } = options
  const { scheduler } = options
  const inTurn = createTurns(scheduler)
  const watched = new Map(
    namespaces.map((namespace) => {
      const cache = createObjectCache<T>({ onChange })
      const reflector = createReflector<T>({
        ...reflectorOptions,
        namespace,
        cache,
        inTurn,
        onState: (failure) => {
          onState(`${options.resource.plural} in ${namespace}`, failure)
        },
      })
      return [namespace, { cache, reflector }] as const
    }),
  )
  const all = [...watched.values()]
  const listIn = (namespace: string) => (watched.get(namespace)?.cache.list() ?? []).filter(isLive)
  return {
    async run(signal) {
      await Promise.all(all.map(({ reflector }) => reflector.run(signal)))
    },
    async refresh(ms, signal) {
      const stale = new Set(watched.keys())
      const lists = [...watched].map(async ([namespace, { reflector }]) => {
        if (await reflector.refresh()) stale.delete(namespace)
      })
      await completesWithin(scheduler, ms, Promise.race([Promise.all(lists), untilAborted(signal)]))
      for (const name of stale) watched.get(name)?.reflector.cancelRefresh()
      return [...stale]
    },
    unsynced: () =>
      [...watched].flatMap(([name, { reflector }]) => (reflector.hasSynced() ? [] : [name])),
    list: () => [...watched.keys()].flatMap(listIn),
    listIn,
    cacheOf: (namespace) => watched.get(namespace)?.cache,
    isStuck: () => all.some(({ reflector }) => reflector.isStuck()),
  }
}

/** Starts each list when the previous one completes, or TURN_MS_MAX after it started. */
function createTurns(scheduler: Scheduler) {
  let turns: Promise<unknown> = Promise.resolve()
  return <R>(list: () => Promise<R>): Promise<R> => {
    const result = turns.then(list)
    turns = turns.then(() => completesWithin(scheduler, TURN_MS_MAX, result)).catch(() => undefined)
    return result
  }
}

/** Whether an object is not being deleted. */
export function isLive({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp === undefined
}
