// The identifiers of the rules of a policy; limiters report hits under them. Pure.
import { ruleIdOf } from '../limits/rule-id.ts'
import { listRules } from '../limits/rule-tree.ts'
import { parseRules } from '../limits/parse-rules.ts'
import { configTreeOf } from './config-tree.ts'
import { descriptorLimitsOf } from './descriptor-limits.ts'
import type { PolicySpec } from './policy.ts'

/**
 * The identifiers of a policy's rules. `spec` was accepted, and sets its domain; `hashes`: of
 * its API keys, if it references Secrets. Uses the limiter's parser, so that controller and limiter
 * derive the same identifiers.
 */
export function ruleIdsOf(spec: PolicySpec, hashes: readonly string[] | undefined): string[] {
  const { domain = '' } = spec
  const limits = descriptorLimitsOf({ ...spec, replaces: [] }, { hashes, namePrefix: '' })
  const parsed = parseRules([configTreeOf(domain.toWellFormed(), limits)], { mergeDomains: false })
  return 'faults' in parsed ? [] : listRules(parsed.rules).map(ruleIdOf)
}
