// How many bytes of rules the policies of each namespace may have. The share of a namespace does
// not depend on the other namespaces, so a new one takes nothing from them.
import type { DomainGrant } from './policy.ts'

/**
 * Maximum size of all policies, in bytes: a response, with the names of its types, stays below the
 * 4 MiB that limiters accept by default. At SIZE_OF_ENTRY it allows fewer than 100,000 descriptors,
 * and with at least 8 bytes for each value fewer than 500,000 values: the bounds of the limiter.
 */
export const POLICIES_BYTES_MAX = 3.5 * 1024 * 1024
/** Size of an entry in addition to its bytes. */
export const SIZE_OF_ENTRY = 37
/** Maximum number of namespaces: the controller keeps one watch open for each. */
export const NAMESPACES_MAX = 100
/** The share of a namespace whose grants set no `bytes`; all namespaces together can have it. */
export const SHARE_BYTES = Math.floor(POLICIES_BYTES_MAX / NAMESPACES_MAX)

/** The share of each namespace in bytes: the largest `bytes` of its grants, or SHARE_BYTES. */
export function sharesOf(grants: readonly DomainGrant[]): ReadonlyMap<string, number> {
  const shares = new Map<string, number>()
  for (const { namespaces, bytes = 0 } of grants)
    for (const namespace of namespaces)
      shares.set(namespace, Math.max(bytes, shares.get(namespace) ?? 0))
  for (const [namespace, bytes] of shares) if (bytes === 0) shares.set(namespace, SHARE_BYTES)
  return shares
}
