// Renders how much a client may request in total if Envoys admit an allowance in addition to a
// rule. An allowance is a token bucket in each Envoy: the requests that it admits do not count
// against the rule.
import { matchDescriptor, type MatchRequest } from './match.ts'

/** The allowances of one client. */
export interface Allowances {
  /** Number of token buckets: one for each listener of each Envoy. */
  readonly buckets: number
  readonly burst: number
  readonly perMinute: number
}

/** The syntax that `parseAllowances` accepts, for messages. */
export const ALLOWANCES_SYNTAX = 'BUCKETS,BURST,PER_MINUTE: integers from 1 to 1000000'

const COUNT_MAX = 1_000_000

/** Parses allowances such as `8,5,12`; undefined if the syntax is invalid. */
export function parseAllowances(source: string): Allowances | undefined {
  if (!/^\d{1,7},\d{1,7},\d{1,7}$/.test(source)) return undefined
  const [buckets = 0, burst = 0, perMinute = 0] = source.split(',').map(Number)
  const isValid = [buckets, burst, perMinute].every((each) => each >= 1 && each <= COUNT_MAX)
  return isValid ? { buckets, burst, perMinute } : undefined
}

/** One line for each rule with a burst that the descriptor matches: its sum with the allowances. */
export function explainAllowances(
  request: MatchRequest,
  allowances: Allowances,
): readonly string[] {
  const match = matchDescriptor(request)
  if (typeof match === 'string') return []
  const { buckets, burst, perMinute } = allowances
  return match.rules.flatMap(({ path, algorithm, limit }) => {
    if (limit === undefined || !algorithm.takesBurst) return []
    const perSecond = (limit.requests * 1e6) / limit.windowUs + (buckets * perMinute) / 60
    const sum = `${Number(perSecond.toFixed(3))} per second, burst ${limit.burst + buckets * burst}`
    const each = `burst ${burst}, ${perMinute} per minute each`
    return [`${path} with ${buckets} allowance buckets (${each}): ${sum}`]
  })
}
