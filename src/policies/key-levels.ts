// The kinds of values that the entries of accepted policies have: on one level, a key has either
// plain values or API keys, because the limiter hashes all values of a key or none.
import type { DescriptorLimits } from './descriptor-limits.ts'

/** The levels of all domains. */
export interface KeyLevels {
  /** The levels of one policy, which must be younger than the policies that were added. */
  readonly of: (domain: string, limits: DescriptorLimits) => PolicyLevels
}

/** The levels of a policy. */
interface PolicyLevels {
  /** An older policy that has the other kind of values for a key of this one, and that key. */
  readonly conflict: () => LevelConflict | undefined
  /** The API keys that no older policy has, and an older policy that has one of the others. */
  readonly ownKeys: () => OwnKeys
  /** Adds the policy, with only these API keys. */
  readonly add: (hashes: readonly string[] | undefined, policy: string) => void
}

/** Why a policy cannot be added. */
export interface LevelConflict {
  readonly key: string
  /** The older policy. */
  readonly policy: string
  /** Whether the older policy matches API keys. */
  readonly isHashed: boolean
}

/** The API keys that a policy adds to a level. */
export interface OwnKeys {
  /** Absent: the limits have no API keys. */
  readonly hashes: readonly string[] | undefined
  readonly olderPolicy: string | undefined
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
    of(domain, limits) {
      const values = valuesOf(domain, limits)
      return {
        conflict() {
          for (const { id, key, isHashed } of values) {
            const level = levels.get(id)
            if (level !== undefined && level.isHashed !== isHashed)
              return { key, policy: level.policy, isHashed: level.isHashed }
          }
          return undefined
        },
        ownKeys() {
          const last = values.find(({ isHashed }) => isHashed)
          const owners = last && levels.get(last.id)?.owners
          const taken = limits.hashes?.find((hash) => owners?.has(hash))
          if (owners === undefined || taken === undefined)
            return { hashes: limits.hashes, olderPolicy: undefined }
          const hashes = limits.hashes?.filter((hash) => !owners.has(hash))
          return { hashes, olderPolicy: owners.get(taken) }
        },
        add(hashes = [], policy) {
          for (const { id, isHashed } of values) {
            const level = levels.get(id) ?? { isHashed, policy, owners: new Map<string, string>() }
            levels.set(id, level)
            if (isHashed) for (const hash of hashes) level.owners.set(hash, policy)
          }
        },
      }
    },
  }
}

/** The entries with a value or API keys; an entry without them is compatible with both kinds. */
function valuesOf(domain: string, { match, hashes }: DescriptorLimits) {
  const last = match.length - 1
  let above = JSON.stringify(domain)
  return match.flatMap(({ key, value }, at) => {
    const isHashed = hashes !== undefined && at === last
    const id = above + JSON.stringify(key)
    above += JSON.stringify([key, value])
    return isHashed || value !== '' ? [{ id, key, isHashed }] : []
  })
}
