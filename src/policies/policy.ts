// A RateLimitPolicy as the compiler reads it, the grants that limit what a namespace may write, and
// the outcome of each policy.

/** One entry of a descriptor path. */
export interface PolicyEntry {
  readonly key: string
  /** Absent or empty: any value. May contain `*`. */
  readonly value?: string
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

/** A RateLimitPolicy. */
export interface Policy {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly createdMs: number
  readonly generation: number
  readonly spec: PolicySpec
}

/** Which namespaces may write to a domain, or only to what is below one first entry. */
export interface DomainGrant {
  readonly domain: string
  readonly namespaces: readonly string[]
  readonly below?: { readonly key: string; readonly value: string }
}

/**
 * Why the compilation does not contain a policy: `NotAllowed`: its namespace may not write there;
 * `Conflicted`: an older policy has the same match; `Invalid`: the limiter cannot apply it;
 * `TooMany`: its namespace exceeds its share of the rules.
 */
type RejectionReason = 'NotAllowed' | 'Conflicted' | 'Invalid' | 'TooMany'

/** Whether the compilation contains a policy. */
export type PolicyOutcome =
  | {
      readonly accepted: true
      /** A warning: the policy is probably a mistake. */
      readonly message?: string
    }
  | { readonly accepted: false; readonly reason: RejectionReason; readonly message: string }
