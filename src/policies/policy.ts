// A RateLimitPolicy as the compiler reads it, the grants that limit what a namespace may write, and
// the outcome of each policy.

/** One entry of a descriptor path. */
export interface PolicyEntry {
  readonly key: string
  /** Absent or empty: any value. May contain `*`. */
  readonly value?: string
  /** Any API key of one Secret; only in the last entry. */
  readonly secretRef?: { readonly name: string }
  /** Any API key of all Secrets with these labels; only in the last entry. */
  readonly secretSelector?: { readonly matchLabels: Readonly<Record<string, string>> }
}

/** A Secret with API keys, without their values. */
export interface ApiKeySecret {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** `sha256:` and the hash of each valid value, in the order of the data keys. */
  readonly hashes: readonly string[]
  /** Why values are ignored, as messages without the values. */
  readonly problems: readonly string[]
}

/** One limit. */
export interface PolicyLimit {
  readonly name: string
  readonly algorithm: string
  readonly requests?: number
  /** Such as `30s`. */
  readonly window?: string
  readonly burst?: number
  readonly unlimited?: boolean
}

/** The spec of a RateLimitPolicy. */
export interface PolicySpec {
  readonly domain?: string
  readonly match: readonly PolicyEntry[]
  readonly limits: readonly PolicyLimit[]
  readonly mode: 'Enforce' | 'Audit'
  readonly replaces?: readonly string[]
  readonly onStoreError: 'Local' | 'Allow' | 'Deny'
}

/** The API keys that apply to a policy. */
export interface ApiKeys {
  /** `sha256:` and the hash of each key; sorted, without duplicates. */
  readonly hashes: readonly string[]
  /** Number of further keys, which do not fit into the share of the namespace. @default 0 */
  readonly surplus?: number
  /** Why keys are missing. */
  readonly problem?: {
    readonly reason: 'SecretNotFound' | 'KeysIgnored'
    readonly message: string
  }
}

/** A spec that was accepted. */
export interface AcceptedSpec {
  /** The generation of the policy with this spec. */
  readonly generation: number
  /** The spec, with its domain. */
  readonly spec: PolicySpec
}

/** A RateLimitPolicy. */
export interface Policy {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly createdMs: number
  readonly generation: number
  readonly spec: PolicySpec
  /** The Secrets of its namespace, from which the compiler selects the API keys. */
  readonly secrets?: readonly ApiKeySecret[]
  /** The keys of the Secrets that the last entry references; absent: it references none. */
  readonly apiKeys?: ApiKeys
  /**
   * The last accepted spec, which the rules contain if `spec` is not accepted, and the keys of the
   * Secrets that it references.
   */
  readonly accepted?: AcceptedSpec & { readonly apiKeys?: ApiKeys }
}

/**
 * A grant: these namespaces may write to the domain; with `below`, only policies that have it as
 * their first entry.
 */
export interface DomainGrant {
  readonly domain: string
  readonly namespaces: readonly string[]
  readonly below?: { readonly key: string; readonly value: string }
  /**
   * Share of the rules that each of the namespaces has, in bytes. The largest `bytes` of the grants
   * of a namespace applies; SHARE_BYTES if none sets it.
   */
  readonly bytes?: number
  /** Whether these policies may reference Secrets of their namespace. @default false */
  readonly apiKeys?: boolean
}

/**
 * Why the compilation does not contain a policy: `NotAllowed`: its namespace must not write there;
 * `Conflicted`: an older policy has the same match, or matches the other kind of values of a key;
 * `Invalid`: the limiter cannot apply it; `TooMany`: its namespace exceeds its share of the rules,
 * or has too many older policies.
 */
type RejectionReason = 'NotAllowed' | 'Conflicted' | 'Invalid' | 'TooMany'

/** Whether the compilation contains a policy. */
export type PolicyOutcome =
  | {
      readonly accepted: true
      /** Why API keys are missing. */
      readonly reason?: NonNullable<ApiKeys['problem']>['reason']
      /** A warning, or how many API keys the policy has. */
      readonly message?: string
    }
  | { readonly accepted: false; readonly reason: RejectionReason; readonly message: string }
