// The kinds of values that the entries of accepted policies have: on one level, a key has either
// plain values or API keys, because the limiter hashes all values of a key or none.
import type { DescriptorLimits } from './write-config.ts'

/** The levels of all domains. */
export interface KeyLevels {
  /** The key of `limits` that has the other kind of values, and the policy with these values. */
  readonly conflictOf: (domain: string, limits: DescriptorLimits) => LevelConflict | undefined
  /**
   * Adds the limits of a policy, from the oldest to the youngest. Returns them without the API keys
   * that an older policy has, and the first of these policies.
   */
  readonly add: (domain: string, limits: DescriptorLimits, policy: string) => AddedLimits
}

interface LevelConflict {
  readonly key: string
  readonly policy: string
}

interface AddedLimits {
  readonly limits: DescriptorLimits
  readonly older: string | undefined
}

interface Level {
  readonly isHashed: boolean
  /** The first policy with values on this level. */
  readonly policy: string
  /** The policies by the hashes of their API keys. */
  readonly owners: Map<string, string>
}

/** Creates levels without values. */
export function createKeyLevels(): KeyLevels {
  const levels = new Map<string, Level>()
  return {
    conflictOf(domain, limits) {
      for (const { id, key, isHashed } of valuesOf(domain, limits)) {
        const level = levels.get(id)
        if (level !== undefined && level.isHashed !== isHashed) return { key, policy: level.policy }
      }
      return undefined
    },
    add(domain, limits, policy) {
      let older: string | undefined
      let hashes = limits.hashes ?? []
      for (const { id, isHashed } of valuesOf(domain, limits)) {
        const level = levels.get(id) ?? { isHashed, policy, owners: new Map<string, string>() }
        levels.set(id, level)
        if (!isHashed) continue
        const taken = hashes.find((hash) => level.owners.has(hash))
        older = taken === undefined ? undefined : level.owners.get(taken)
        hashes = hashes.filter((hash) => !level.owners.has(hash))
        for (const hash of hashes) level.owners.set(hash, policy)
      }
      return { limits: limits.hashes === undefined ? limits : { ...limits, hashes }, older }
    },
  }
}

/** The entries with values; those without fit every level. */
function valuesOf(domain: string, { match, hashes }: DescriptorLimits) {
  const last = match.length - 1
  return match.flatMap(({ key, value }, at) => {
    const isHashed = hashes !== undefined && at === last
    if (!isHashed && value === '') return []
    const above = match.slice(0, at).map((entry) => [entry.key, entry.value])
    return [{ id: JSON.stringify([domain, above, key]), key, isHashed }]
  })
}
