// Watches the RateLimitPolicies of the granted namespaces, and the Secrets with their API keys, on
// every replica of the controller.
import type { AcceptedSpec, ApiKeySecret, DomainGrant, Policy } from '../../policies/policy.ts'
import type { Change } from '../object-cache.ts'
import { type KubeObject, splitKey } from '../objects.ts'
import { watchApiKeys } from './api-key-secrets.ts'
import { namespacesOf } from './parse-grants.ts'
import { RATE_LIMIT_POLICIES, type RateLimitPolicy } from './rate-limit-policy.ts'
import { isLive, watchNamespaces, type WatchNamespacesOptions } from './watch-namespaces.ts'

/** Dependencies of the watches. */
export interface WatchPoliciesDeps extends Pick<
  WatchNamespacesOptions<RateLimitPolicy>,
  'api' | 'scheduler' | 'random' | 'metrics' | 'log' | 'backOff' | 'onState'
> {
  readonly grants: readonly DomainGrant[]
}

/** The policies of all namespaces. */
export interface PolicyWatch {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /**
   * Relists all, so that nothing is older than this call; resolves at the latest after
   * REFRESH_MS_MAX, or when `signal` aborts. Namespaces that are unreadable keep their last lists.
   */
  readonly refresh: (signal: AbortSignal) => Promise<void>
  /** The namespaces that have not been listed: their policies or their API keys are unknown. */
  readonly unsynced: () => readonly string[]
  /** The policies, without those that are being deleted. */
  readonly list: () => readonly RateLimitPolicy[]
  readonly get: (key: string) => RateLimitPolicy | undefined
  /** The Secrets with API keys of a namespace: the same array until one changes. */
  readonly secretsOf: (namespace: string) => readonly ApiKeySecret[]
  /** Stores a policy that was written, unless the watch has delivered another version. */
  readonly replace: (before: RateLimitPolicy, written: RateLimitPolicy) => void
  /** Whether a watch hangs. */
  readonly isStuck: () => boolean
}

/** A policy may have 256 KiB of annotations; a page is in memory several times at once. */
const PAGE_POLICIES = 20
const REFRESH_MS_MAX = 15_000

/** Creates the watches; calls `onChange` for changes of policies, `onKeysChange` for API keys. */
export function watchPolicies(
  deps: WatchPoliciesDeps,
  onChange: (change: Change<RateLimitPolicy>) => void,
  onKeysChange: () => void,
): PolicyWatch {
  const { grants, ...options } = deps
  const keys = watchApiKeys(deps, onKeysChange)
  const watches = watchNamespaces<RateLimitPolicy>({
    ...options,
    namespaces: namespacesOf(grants),
    resource: RATE_LIMIT_POLICIES,
    pageObjects: PAGE_POLICIES,
    trim,
    onChange,
  })
  const unsynced = () => [...new Set([...watches.unsynced(), ...keys.unsynced()])]
  const cacheOf = (key: string) => watches.cacheOf(splitKey(key).namespace)
  return {
    async run(signal) {
      await Promise.all([keys.run(signal), watches.run(signal)])
    },
    async refresh(signal) {
      const lists = [watches, keys].map(({ refresh }) => refresh(REFRESH_MS_MAX, signal))
      const stale = new Set((await Promise.all(lists)).flat())
      const namespaces = [...stale.difference(new Set(unsynced()))]
      if (signal.aborted || namespaces.length === 0) return
      deps.log.warn({ namespaces }, 'policies or API keys not relisted: earlier lists are used')
    },
    unsynced,
    list: watches.list,
    get(key) {
      const policy = cacheOf(key)?.get(key)
      return policy !== undefined && isLive(policy) ? policy : undefined
    },
    secretsOf: keys.list,
    replace({ metadata }, written) {
      const { namespace, name, resourceVersion } = metadata
      const cache = watches.cacheOf(namespace)
      const cached = cache?.get(`${namespace}/${name}`)
      if (cached?.metadata.resourceVersion === resourceVersion) cache?.put(trim(written))
    },
    isStuck: () => keys.isStuck() || watches.isStuck(),
  }
}

/** The fields that we read; annotations may contain a copy of the object. */
function trim(object: KubeObject): RateLimitPolicy {
  // The API server validates policies against the CRD that the type is generated from.
  const { metadata, spec, status } = object as RateLimitPolicy
  const { name, namespace, uid, resourceVersion } = metadata
  const { generation, creationTimestamp, deletionTimestamp } = metadata
  return {
    metadata: {
      ...{ name, namespace, uid, resourceVersion },
      ...(generation !== undefined && { generation }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    spec,
    ...(status !== undefined && { status }),
  }
}

/** Whether a change affects the rules; an update of only the status does not. */
export function affectsRules({ type, object, before }: Change<RateLimitPolicy>): boolean {
  if (type !== 'changed' || before === undefined) return true
  const { generation, deletionTimestamp } = object.metadata
  const { metadata } = before
  return generation !== metadata.generation || deletionTimestamp !== metadata.deletionTimestamp
}

/** A policy as the compiler reads it, with its last accepted spec, and its namespace's Secrets. */
export function policyOf(
  { metadata, spec }: RateLimitPolicy,
  secrets: readonly ApiKeySecret[],
  last: AcceptedSpec | undefined,
): Policy {
  const { namespace, name, uid, generation = 0, creationTimestamp = '' } = metadata
  const createdMs = Date.parse(creationTimestamp)
  if (Number.isNaN(createdMs)) throw new Error(`${namespace}/${name} has no creationTimestamp`)
  const policy = { namespace, name, uid, generation, createdMs, spec, secrets }
  return last === undefined ? policy : { ...policy, accepted: last }
}
