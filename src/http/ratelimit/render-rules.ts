// What /rlconfig shows: a line for each rule in force, as the reference writes it and with what
// only ours can say, then what is wrong in the files as they are now.
import { fixedWindow } from '../../limits/fixed-window.ts'
import { renderFault } from '../../limits/rule-fault.ts'
import { listRules } from '../../limits/rule-tree.ts'
import type { Rule, RuleFault, RuleSet } from '../../limits/rule.ts'
import { renderWindow } from '../../limits/rule-words.ts'

/** Renders the rules, and the faults for which newer files were refused, as lines of text. */
export function renderRules(rules: RuleSet, faults: readonly RuleFault[]): string {
  const lines = listRules(rules).map(renderRule)
  const refused = faults.map(renderFault)
  const heading = 'the files as they are now are not in force:'
  const all = refused.length === 0 ? lines : [...lines, heading, ...refused]
  return all.map((line) => `${line}\n`).join('')
}

function renderRule(rule: Rule): string {
  const { path, unit = 'UNKNOWN', limit, isShadow, isQuota } = rule
  const words = [
    `${path}: unit=${unit} requests_per_unit=${limit?.requests ?? 0}`,
    `shadow_mode: ${String(isShadow)}`,
    `quota_mode: ${String(isQuota)}`,
    ...besidesOf(rule),
  ]
  return words.join(', ')
}

/** What the reference has no words for, where it is not what a file without a word means. */
function besidesOf({ limit, algorithm, unit, name, replaces, onStoreError }: Rule): string[] {
  const counted =
    limit === undefined
      ? ['unlimited: true']
      : [
          ...(algorithm === fixedWindow ? [] : [`algorithm: ${algorithm.name}`]),
          ...(unit === undefined ? [`window: ${renderWindow(limit.windowUs)}`] : []),
          ...(algorithm.takesBurst ? [`burst: ${limit.burst}`] : []),
          ...(limit.denyConsumes === (algorithm === fixedWindow)
            ? []
            : [`deny_consumes: ${String(limit.denyConsumes)}`]),
        ]
  return [
    ...counted,
    ...(name === undefined ? [] : [`name: ${name}`]),
    ...(replaces.length === 0 ? [] : [`replaces: ${replaces.join(' ')}`]),
    ...(onStoreError === 'local' ? [] : [`on_store_error: ${onStoreError}`]),
  ]
}
