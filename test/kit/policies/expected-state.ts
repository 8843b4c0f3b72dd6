// Compares RateLimitPolicies on an API server, and the rules of all limiters, with what the
// compiler returns for these policies. Reads the rules as an operator does: from /rlconfig.
import { isDeepStrictEqual } from 'node:util'
import { renderRules } from '../../../src/http/ratelimit/render-rules.ts'
import type { RateLimitPolicy } from '../../../src/kube/rate-limit-policy/rate-limit-policy.ts'
import { policyOf } from '../../../src/kube/rate-limit-policy/watch-policies.ts'
import { hashApiKeys } from '../../../src/policies/api-keys.ts'
import { type Compilation, compile } from '../../../src/policies/compile.ts'
import type { ApiKeySecret, DomainGrant } from '../../../src/policies/policy.ts'
import { rulesOf } from './random-policies.ts'

/** A Secret with API keys, as the API server returns it. */
export interface KeySecret {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly data?: Readonly<Record<string, string>>
}

/** What was observed. */
export interface ObservedState {
  readonly policies: readonly RateLimitPolicy[]
  readonly secrets: readonly KeySecret[]
  /** The response of /rlconfig of each limiter. */
  readonly rlconfigs: readonly string[]
}

/** The policies as the compiler reads them, with their last accepted specs. */
export function policiesOf({ policies, secrets }: Omit<ObservedState, 'rlconfigs'>) {
  const byNamespace = Map.groupBy(secrets, ({ metadata }) => metadata.namespace)
  const keys = new Map(
    [...byNamespace].map(([namespace, all]) => [namespace, all.map(keySecretOf)] as const),
  )
  return policies.map((policy) =>
    policyOf(policy, keys.get(policy.metadata.namespace) ?? [], policy.status?.accepted),
  )
}

function keySecretOf({ metadata: { name, labels = {} }, data = {} }: KeySecret): ApiKeySecret {
  return { name, labels, ...hashApiKeys(data) }
}

/** The first difference; `undefined` if all policies and all limiters have the final state. */
export function differenceOf(
  observed: ObservedState,
  grants: readonly DomainGrant[],
): string | undefined {
  const compilation = compile(policiesOf(observed), grants)
  const expected = renderRules(rulesOf(compilation), [])
  const total = observed.rlconfigs.length
  for (const [at, rlconfig] of observed.rlconfigs.entries()) {
    const difference = differenceOfLines(rlconfig.split('\n'), expected.split('\n'))
    if (difference !== undefined) return `limiter ${at + 1}: ${difference}`
  }
  for (const policy of observed.policies) {
    const { namespace, name } = policy.metadata
    const fault = faultOfStatus(policy, compilation, total)
    if (fault !== undefined) return `${namespace}/${name}: ${fault}: ${JSON.stringify(policy)}`
  }
  return undefined
}

function differenceOfLines(observed: readonly string[], expected: readonly string[]) {
  const at = expected.findIndex((line, index) => line !== observed[index])
  if (at === -1 && observed.length === expected.length) return undefined
  const index = at === -1 ? expected.length : at
  const lengths = `${observed.length} lines, expected ${expected.length}`
  return `${lengths}; first: ${String(observed[index])}, expected ${String(expected[index])}`
}

/** What is wrong in the status of a policy. */
function faultOfStatus(
  { metadata: { namespace, name, generation = 0 }, status }: RateLimitPolicy,
  { outcomes, active }: Compilation,
  total: number,
): string | undefined {
  const outcome = outcomes.get(`${namespace}/${name}`)
  const spec = active.get(`${namespace}/${name}`)
  if (outcome === undefined) return 'no outcome'
  const conditionOf = (type: string) => {
    const found = status?.conditions?.find((condition) => condition.type === type)
    return found && [found.status, found.reason, found.observedGeneration]
  }
  const { accepted: isAccepted, reason = 'Accepted' } = outcome
  const acceptance = isAccepted ? 'True' : 'False'
  const programmed =
    spec === undefined
      ? ['False', 'NotAccepted', generation]
      : ['True', 'Programmed', spec.generation]
  const checks: readonly (readonly [string, unknown, unknown])[] = [
    ['observedGeneration', status?.observedGeneration, generation],
    ['Accepted', conditionOf('Accepted'), [acceptance, reason, generation]],
    ['Programmed', conditionOf('Programmed'), programmed],
    ['Stalled', conditionOf('Stalled'), isAccepted ? undefined : ['True', reason, generation]],
    ['Reconciling', conditionOf('Reconciling'), undefined],
    ['replicas', status?.replicas, spec && { active: total, total }],
    ['accepted', spec && status?.accepted, spec],
  ]
  const wrong = checks.find(([, observed, expected]) => !isDeepStrictEqual(observed, expected))
  if (wrong === undefined) return undefined
  const [field, observed, expected] = wrong
  return `${field} is ${JSON.stringify(observed)}, expected ${JSON.stringify(expected)}`
}
