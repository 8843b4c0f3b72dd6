// How many bytes of rules the policies of each namespace may have. The share of a namespace does
// not depend on the other namespaces, so a new namespace takes nothing from them.
import type { DomainGrant } from './policy.ts'

/**
 * Maximum size of all policies, in bytes: a response, with the names of its types, stays below the
 * 4 MiB that limiters accept by default. A descriptor counts at least DESCRIPTOR_OVERHEAD_BYTES, so
 * there are fewer than 100,000, the limiter's maximum. A value has at least 8 bytes, so there are
 * fewer than 500,000, also the limiter's maximum.
 */
export const POLICIES_BYTES_MAX = 3.5 * 1024 * 1024
/** Bytes counted per descriptor in addition to its serialized size. */
export const DESCRIPTOR_OVERHEAD_BYTES = 37
/** Bytes of a share that each API key needs at least: with the shortest possible limit. */
export const KEY_BYTES_MIN = 200
/** Maximum number of namespaces: the controller keeps one watch open for each. */
export const NAMESPACES_MAX = 100
/** Share of a namespace without `bytes` in a grant; NAMESPACES_MAX shares fit into the maximum. */
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

/** Maximum number of API keys in the rules of a namespace with this share. */
export function keysMaxOf(share: number): number {
  return Math.floor(share / KEY_BYTES_MIN)
}
