// Watches the Secrets with API keys in the namespaces that may have them. The values are hashed
// when they arrive; the values themselves are not kept.
import { API_KEYS_LABEL, hashApiKeys } from '../../policies/api-keys.ts'
import type { ApiKeySecret } from '../../policies/policy.ts'
import type { DomainGrant } from '../../policies/policy.ts'
import { compareStrings } from '../../policies/write-config.ts'
import type { KubeObject, ObjectMeta } from '../objects.ts'
import { namespacesOf } from './parse-grants.ts'
import {
  type NamespaceWatch,
  watchNamespaces,
  type WatchNamespacesOptions,
} from './watch-namespaces.ts'

/** Dependencies of the watches. */
interface WatchApiKeysDeps extends Pick<
  WatchNamespacesOptions<CachedSecret>,
  'api' | 'scheduler' | 'random' | 'metrics' | 'log' | 'backOff' | 'onState'
> {
  readonly grants: readonly DomainGrant[]
}

/** The Secrets of all namespaces. */
export interface ApiKeyWatch extends Pick<NamespaceWatch<KubeObject>, 'refresh'> {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** The namespaces whose Secrets have not been listed. */
  readonly unsynced: () => readonly string[]
  /**
   * The Secrets of a namespace, sorted by name, without those that are being deleted. Returns the
   * same array until one changes.
   */
  readonly list: (namespace: string) => readonly ApiKeySecret[]
  /** Whether a watch hangs. */
  readonly isStuck: () => boolean
}

interface CachedSecret extends ApiKeySecret {
  readonly metadata: ObjectMeta
}

const SECRETS = { group: '', version: 'v1', plural: 'secrets' }
/** A Secret has up to 1 MiB; a page is in memory several times while it is parsed. */
const PAGE_SECRETS = 4

/** Creates the watches; `onChange` is called for each change. */
export function watchApiKeys(deps: WatchApiKeysDeps, onChange: () => void): ApiKeyWatch {
  const { grants, ...options } = deps
  const lists = new Map<string, readonly ApiKeySecret[]>()
  const { listIn, ...watches } = watchNamespaces<CachedSecret>({
    ...options,
    namespaces: namespacesOf(grants.filter(({ apiKeys }) => apiKeys)),
    resource: SECRETS,
    labelSelector: `${API_KEYS_LABEL}=true`,
    pageObjects: PAGE_SECRETS,
    trim: hashSecret,
    onChange({ object }) {
      lists.delete(object.metadata.namespace)
      onChange()
    },
  })
  return {
    ...watches,
    list(namespace) {
      const known = lists.get(namespace)
      if (known !== undefined) return known
      const all = listIn(namespace).toSorted((a, b) => compareStrings(a.name, b.name))
      lists.set(namespace, all)
      return all
    },
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
