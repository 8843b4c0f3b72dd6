// The allowance of the stack's edges: the chart's, for the largest number of edges.
import { readFile } from 'node:fs/promises'
import { lowerRedirectRule, splitRule } from '../../envoy/allowance.ts'

/** The maximum number of edges of a stack. */
export const EDGES_MAX = 5

const shippedRules = new URL('../../envoy/rate-limits.yaml', import.meta.url)

/** The shipped rule of redirects, split between the edges and the limiters. */
export const stackAllowance = splitRule(
  { burst: 500, perSecond: 200 },
  { allowance: { burst: 5, perMinute: 12 }, buckets: EDGES_MAX },
)

/** The rules file of the limiters; lower than the limits if the edges have the allowance. */
export async function rulesOf(given: {
  /** @default the shipped rules */
  readonly rules?: string | undefined
  readonly hasAllowance: boolean
}): Promise<string> {
  const rules = given.rules ?? (await readFile(shippedRules, 'utf8'))
  return given.hasAllowance ? lowerRedirectRule(rules, stackAllowance.limiter) : rules
}
