// Limits of a call with their decisions, as the input of a verdict.
import type { Decision } from '../../src/limits/algorithm.ts'
import { fixedWindow } from '../../src/limits/fixed-window.ts'
import type { Rule } from '../../src/limits/rule.ts'
import type { CheckedLimit } from '../../src/limits/verdict.ts'

/** 10 per minute. */
export const limit = { requests: 10, windowUs: 60_000_000, burst: 10, denyConsumes: true }

const rule: Rule = {
  path: 'shop.client',
  identity: 'shop.client',
  name: undefined,
  replaces: [],
  algorithm: fixedWindow,
  limit,
  unit: 'MINUTE',
  isShadow: false,
  isQuota: false,
  onStoreError: 'local',
  metadata: undefined,
  hasDetailedMetric: false,
}

/** 5 of 10 hits remain. */
export const admitted: Decision = {
  admitted: true,
  remaining: 5,
  over: 0,
  resetUs: 30_000_001,
  retryAfterUs: 0,
  next: undefined,
  expiresInUs: 0,
}
/** A denial for half a minute. */
export const denied: Decision = {
  ...admitted,
  admitted: false,
  remaining: 0,
  over: 1,
  retryAfterUs: 30_000_001,
}

/** A limit of the descriptor 0 that admits the call, unless it is changed. */
export const decided = (of: {
  descriptorIndex?: number
  rule?: Partial<Rule>
  hits?: number
  decision?: Partial<Decision>
}): CheckedLimit => ({
  descriptorIndex: of.descriptorIndex ?? 0,
  rule: { ...rule, ...of.rule },
  requestedHits: of.hits ?? 1,
  decision: { ...admitted, ...of.decision },
})
