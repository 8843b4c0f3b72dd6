// The allowance: redirects of each client that every Envoy admits without a call to the limiter.
// Splits one rule between the Envoys and the limiter, so that together they never exceed it.
import type { EdgeSettings } from './edge-settings.ts'

/** A token bucket of one client, in requests. */
export interface Bucket {
  readonly burst: number
  readonly perSecond: number
}

/** What one Envoy admits without a call; rates of this size are whole numbers only per minute. */
interface Allowance {
  readonly burst: number
  readonly perMinute: number
}

/** A rule that is split: the limiter's bucket, and the settings of every Envoy. */
export interface SplitRule {
  readonly limiter: Bucket
  readonly edge: Pick<
    EdgeSettings,
    | 'allowanceBurst'
    | 'allowancePerMinute'
    | 'allowanceLimit'
    | 'allowanceRemaining'
    | 'redirectBurst'
    | 'redirectPerSecond'
  >
}

/**
 * Splits `rule`. `buckets` is the largest number of allowances of one client: the maximum number of
 * Envoys times their public listeners, as each listener has its own. The local limit that an Envoy
 * applies without the limiter is lower by one allowance. Rates are rounded so that the sum never
 * exceeds the rule. Throws if nothing is left for the limiter.
 */
export function splitRule(
  rule: Bucket,
  { allowance, buckets }: { readonly allowance: Allowance; readonly buckets: number },
): SplitRule {
  const lowered = (count: number): Bucket => ({
    burst: rule.burst - count * allowance.burst,
    perSecond: rule.perSecond - Math.ceil((count * allowance.perMinute) / 60),
  })
  const limiter = lowered(buckets)
  if (limiter.burst < 1 || limiter.perSecond < 1) {
    throw new Error(
      `Cannot split the redirect rule: ${buckets} allowance buckets (burst ${allowance.burst}, ` +
        `${allowance.perMinute} per minute each) leave nothing of burst ${rule.burst}, ` +
        `${rule.perSecond} per second; choose a larger rule or a smaller allowance`,
    )
  }
  const local = lowered(1)
  return {
    limiter,
    edge: {
      allowanceBurst: allowance.burst,
      allowancePerMinute: allowance.perMinute,
      allowanceLimit: limiter.burst,
      allowanceRemaining: Math.min(limiter.burst, limiter.perSecond),
      redirectBurst: local.burst,
      redirectPerSecond: local.perSecond,
    },
  }
}

/** The shipped rules with the limiter's share of the redirect rule. Throws if it is missing. */
export function lowerRedirectRule(rules: string, { burst, perSecond }: Bucket): string {
  const rule =
    /(name: redirects-per-client\n(?: +\w+: \w+\n)*? +requests_per_unit: )\d+(\n +burst: )\d+/
  if (!rule.test(rules)) throw new Error('the rules have no token bucket redirects-per-client')
  return rules.replace(rule, `$1${perSecond}$2${burst}`)
}
