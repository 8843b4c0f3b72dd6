// The identifiers of the rules of a policy; limiters report hits under them. Pure.
import { ruleIdOf } from '../limits/rule-id.ts'
import { listRules } from '../limits/rule-tree.ts'
import { parseRules } from '../limits/rules.ts'
import { configTreeOf } from './config-tree.ts'
import type { PolicySpec } from './policy.ts'
import { limitFieldsOf } from './write-config.ts'

/**
 * The identifiers of a policy's rules. `spec` was accepted, and has its domain; `hashes`: those of
 * its API keys, if it references Secrets. Uses the limiter's parser, so that controller and limiter
 * derive the same identifiers.
 */
export function ruleIdsOf(spec: PolicySpec, hashes: readonly string[] | undefined): string[] {
  const { domain = '' } = spec
  const match = spec.match.map(({ key, value = '' }) => ({
    key: key.toWellFormed(),
    value: value.toWellFormed(),
  }))
  const limits = limitFieldsOf({ ...spec, replaces: [] }, '')
  const own = { match, limits, isAudit: spec.mode === 'Audit', ...(hashes && { hashes }) }
  const parsed = parseRules([configTreeOf(domain.toWellFormed(), own)], { mergeDomains: false })
  return 'faults' in parsed ? [] : listRules(parsed.rules).map(ruleIdOf)
}
