// The output of /rlconfig: a line for each active rule, in envoyproxy/ratelimit's format plus
// further fields, then the faults for which newer files were rejected.
import { defaultAlgorithm } from '../../limits/algorithms.ts'
import { renderFault } from '../../limits/rule-fault.ts'
import { listRules } from '../../limits/rule-tree.ts'
import type { Rule, RuleFault, RuleSet } from '../../limits/rule.ts'
import { renderWindow } from '../../limits/describe-rules.ts'

/** Renders the active rules, and the faults of newer files. */
export function renderRules(rules: RuleSet, faults: readonly RuleFault[]): string {
  const lines = listRules(rules).map(renderRule)
  const faultLines = faults.map(renderFault)
  const heading = 'the newest rules have faults and are not loaded:'
  const all = faultLines.length === 0 ? lines : [...lines, heading, ...faultLines]
  return all.map((line) => `${line}\n`).join('')
}

function renderRule(rule: Rule): string {
  const { path, unit = 'UNKNOWN', limit, isShadow, isQuota } = rule
  const fields = [
    `${path}: unit=${unit} requests_per_unit=${limit?.requests ?? 0}`,
    `shadow_mode: ${String(isShadow)}`,
    `quota_mode: ${String(isQuota)}`,
    ...furtherFieldsOf(rule),
  ]
  return fields.join(', ')
}

/** The fields that envoyproxy/ratelimit does not print, without those with default values. */
function furtherFieldsOf(rule: Rule): string[] {
  const { limit, algorithm, unit, name, replaces, onStoreError } = rule
  const limitFields =
    limit === undefined
      ? ['unlimited: true']
      : [
          ...(algorithm === defaultAlgorithm ? [] : [`algorithm: ${algorithm.name}`]),
          ...(unit === undefined ? [`window: ${renderWindow(limit.windowUs)}`] : []),
          ...(algorithm.takesBurst ? [`burst: ${limit.burst}`] : []),
          ...(limit.denyConsumes === algorithm.denyConsumesByDefault
            ? []
            : [`deny_consumes: ${String(limit.denyConsumes)}`]),
        ]
  return [
    ...limitFields,
    ...(name === undefined ? [] : [`name: ${name}`]),
    ...(replaces.length === 0 ? [] : [`replaces: ${replaces.join(' ')}`]),
    ...(onStoreError === 'local' ? [] : [`on_store_error: ${onStoreError}`]),
  ]
}
