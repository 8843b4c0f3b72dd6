// Selects the API keys of policies from the Secrets of their namespaces. Equal selectors return the
// same array, and the share of the namespace bounds the number of keys, so that many policies with
// many keys need little memory. Pure.
import { apiKeysOf, referencesSecrets } from './api-keys.ts'
import type { GrantIndex } from './check-policy.ts'
import type { ApiKeySecret, ApiKeys, Policy, PolicyEntry } from './policy.ts'
import { keysMaxOf } from './shares.ts'

/**
 * Maximum number of keys that all selectors of a namespace select together, as a multiple of the
 * keys that fit into its share.
 */
export const SELECTED_SHARES_MAX = 20

interface Selection {
  readonly secrets: readonly ApiKeySecret[]
  readonly keysMax: number
  readonly keys: ApiKeys
}

interface Selections {
  /** Number of keys that further selectors of the namespace may select. */
  left: number
  readonly bySelector: Map<string, Selection>
}

/**
 * Creates a function that adds the API keys to policies, which must be sorted by age. It keeps the
 * selections of its previous call: while the keys of a selector do not change, it returns the same
 * object.
 */
export function createKeySelection(
  grants: Pick<GrantIndex, 'shareOf'>,
): (policies: readonly Policy[]) => readonly Policy[] {
  let cached: ReadonlyMap<string, Selections> = new Map()
  return (policies) => {
    const next = new Map<string, Selections>()
    const selected = policies.map((policy) => {
      const { namespace, spec, secrets, accepted } = policy
      if (secrets === undefined) return policy
      const keysInShare = keysMaxOf(grants.shareOf(namespace))
      const own = next.get(namespace) ?? newSelections(keysInShare)
      next.set(namespace, own)
      const before = cached.get(namespace)?.bySelector
      const keysOf = (match: readonly PolicyEntry[]) => {
        const entry = match.find(referencesSecrets)
        return entry && select(entry, own, { before, secrets, keysInShare })
      }
      const apiKeys = keysOf(spec.match)
      const lastKeys = accepted && keysOf(accepted.spec.match)
      return {
        ...{ ...policy, ...(apiKeys && { apiKeys }) },
        ...(accepted && { accepted: { ...accepted, ...(lastKeys && { apiKeys: lastKeys }) } }),
      }
    })
    cached = next
    return selected
  }
}

function newSelections(keysInShare: number): Selections {
  return { left: SELECTED_SHARES_MAX * keysInShare, bySelector: new Map() }
}

function select(
  entry: PolicyEntry,
  own: Selections,
  given: {
    readonly before: ReadonlyMap<string, Selection> | undefined
    readonly secrets: readonly ApiKeySecret[]
    readonly keysInShare: number
  },
): ApiKeys {
  const { secrets, keysInShare } = given
  const selector = JSON.stringify([entry.secretRef?.name, entry.secretSelector?.matchLabels])
  const known = own.bySelector.get(selector)
  if (known?.secrets === secrets) return known.keys
  const before = given.before?.get(selector)
  const keysMax = Math.min(keysInShare, own.left)
  const isSame = before?.secrets === secrets && before.keysMax === keysMax
  const keys = isSame ? before.keys : newKeys(entry, secrets, { keysMax, keysInShare })
  const kept = before && isEqual(before.keys, keys) ? before.keys : keys
  own.left -= kept.hashes.length
  own.bySelector.set(selector, { secrets, keysMax, keys: kept })
  return kept
}

function newKeys(
  entry: PolicyEntry,
  secrets: readonly ApiKeySecret[],
  { keysMax, keysInShare }: { readonly keysMax: number; readonly keysInShare: number },
): ApiKeys {
  if (keysMax > 0) return apiKeysOf(entry, secrets, keysMax)
  const selectable = SELECTED_SHARES_MAX * keysInShare
  const message = `its API keys are ignored: older policies of the namespace select ${selectable}`
  return { hashes: [], problem: { reason: 'KeysIgnored', message } }
}

function isEqual(one: ApiKeys, other: ApiKeys): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
