// Watches the Secrets with API keys in the namespaces that may have them. The values are hashed
// when they arrive; nothing keeps a value.
import { API_KEYS_LABEL, type ApiKeySecret, hashApiKeys } from '../../policies/api-keys.ts'
import type { DomainGrant } from '../../policies/policy.ts'
import { createObjectCache, type ObjectCache } from '../object-cache.ts'
import type { KubeError } from '../kube-error.ts'
import type { KubeObject, ObjectMeta } from '../objects.ts'
import { createReflector, type Reflector, type ReflectorOptions } from '../reflector.ts'
import { namespacesOf } from './parse-grants.ts'

/** Dependencies of the watches. */
interface WatchApiKeysDeps extends Pick<
  ReflectorOptions<KubeObject>,
  'api' | 'scheduler' | 'random' | 'metrics' | 'log' | 'backOff'
> {
  readonly grants: readonly DomainGrant[]
  /** Called after each list and watch of a namespace; `failure` is undefined if it succeeded. */
  readonly onState: (resource: string, failure: KubeError | undefined) => void
}

/** The Secrets of all namespaces. */
export interface ApiKeyWatch {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** The namespaces whose Secrets have not been listed. */
  readonly unsynced: () => readonly string[]
  /** The Secrets of a namespace, without those that are being deleted. */
  readonly list: (namespace: string) => readonly ApiKeySecret[]
  /** Whether a watch hangs because of a defect. */
  readonly isStuck: () => boolean
}

interface CachedSecret extends ApiKeySecret {
  readonly metadata: ObjectMeta
}

interface Watched {
  readonly cache: ObjectCache<CachedSecret>
  readonly reflector: Reflector
}

const SECRETS = { group: '', version: 'v1', plural: 'secrets' }
/** A Secret has up to 1 MiB, and a response up to 64 MiB. */
const PAGE_SECRETS = 25

/** Creates the watches; `onChange` is called for each change. */
export function watchApiKeys(deps: WatchApiKeysDeps, onChange: () => void): ApiKeyWatch {
  const { grants, onState, ...reflectorDeps } = deps
  const namespaces = namespacesOf(grants.filter(({ apiKeys }) => apiKeys))
  const watched = new Map<string, Watched>(
    namespaces.map((namespace) => {
      const cache = createObjectCache<CachedSecret>({ onChange })
      const reflector = createReflector<CachedSecret>({
        ...reflectorDeps,
        resource: SECRETS,
        namespace,
        labelSelector: `${API_KEYS_LABEL}=true`,
        pageObjects: PAGE_SECRETS,
        cache,
        trim: hashSecret,
        onState: (failure) => {
          onState(`${SECRETS.plural} in ${namespace}`, failure)
        },
      })
      return [namespace, { cache, reflector }]
    }),
  )
  const all = [...watched.values()]
  return {
    async run(signal) {
      await Promise.all(all.map(({ reflector }) => reflector.run(signal)))
    },
    unsynced: () =>
      [...watched].flatMap(([name, each]) => (each.reflector.hasSynced() ? [] : name)),
    list: (namespace) =>
      (watched.get(namespace)?.cache.list() ?? []).filter(
        ({ metadata }) => metadata.deletionTimestamp === undefined,
      ),
    isStuck: () => all.some(({ reflector }) => reflector.isStuck()),
  }
}

/** The fields that we read, with hashes instead of values; annotations may contain the values. */
function hashSecret(object: KubeObject): CachedSecret {
  const { data } = object as { readonly data?: Readonly<Record<string, string>> | null }
  const { name, namespace, uid, resourceVersion, deletionTimestamp, labels } = object.metadata
  return {
    name,
    labels: labels ?? {},
    ...hashApiKeys(data ?? {}),
    metadata: {
      ...{ name, namespace, uid, resourceVersion },
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
  }
}
