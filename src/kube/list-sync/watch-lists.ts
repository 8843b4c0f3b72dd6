// Watches the Secrets and ConfigMaps with operator lists, each by its name: only then can a Role
// restrict the controller to these objects. The API server sends only their metadata, of which only
// the versions are kept.
import { hash } from 'node:crypto'
import type { KubeError } from '../kube-error.ts'
import { createObjectCache } from '../object-cache.ts'
import { type KubeObject, versionOf } from '../objects.ts'
import { createReflector, type ReflectorOptions } from '../reflector.ts'

/** An object with an operator list. */
export interface ListObject {
  readonly plural: 'secrets' | 'configmaps'
  readonly name: string
}

/** Dependencies of the watches, and what they watch. */
export interface WatchListsOptions extends Pick<
  ReflectorOptions<KubeObject>,
  'api' | 'namespace' | 'scheduler' | 'random' | 'metrics' | 'log' | 'backOff'
> {
  readonly objects: readonly ListObject[]
  /** Called for each change of an object, and when it is first listed. */
  readonly onChange: () => void
  /** Called after each list and each opened watch of an object, and with each `failure`. */
  readonly onState: (resource: string, failure: KubeError | undefined) => void
}

/** The watches of all objects. */
export interface ListWatch {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** A string that differs between any two states of the objects. */
  readonly version: () => string
  /** The objects that have not been listed. */
  readonly unsynced: () => readonly string[]
  /** Whether a watch hangs. */
  readonly isStuck: () => boolean
}

const VERSION_LENGTH = 16

/** Creates the watches. */
export function watchLists(options: WatchListsOptions): ListWatch {
  const { objects, onChange, onState, ...reflectorOptions } = options
  const watched = objects.map(({ plural, name }) => {
    const resource = `${plural} ${name}`
    const cache = createObjectCache<KubeObject>({ onChange })
    const reflector = createReflector<KubeObject>({
      ...reflectorOptions,
      resource: { group: '', version: 'v1', plural },
      fieldSelector: `metadata.name=${name}`,
      isMetadataOnly: true,
      cache,
      trim: trimToVersion,
      onState: (failure) => {
        onState(resource, failure)
      },
    })
    return { resource, cache, reflector }
  })
  return {
    async run(signal) {
      await Promise.all(watched.map(({ reflector }) => reflector.run(signal)))
    },
    version() {
      const versions = watched.map(({ resource, cache }) => [resource, cache.list().map(versionOf)])
      return hash('sha256', JSON.stringify(versions)).slice(0, VERSION_LENGTH)
    },
    unsynced: () =>
      watched.flatMap(({ resource, reflector }) => (reflector.hasSynced() ? [] : [resource])),
    isStuck: () => watched.some(({ reflector }) => reflector.isStuck()),
  }
}

/** Keeps the identity and the version; an annotation of kubectl may contain the object's data. */
function trimToVersion({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion } = metadata
  return { metadata: { name, namespace, uid, resourceVersion } }
}
