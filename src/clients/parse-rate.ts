// The option --rate of the operator's commands that read or write many links.
import { UsageError } from '../process/role.ts'

const RATE_MAX = 1_000_000

/** The items per second that --rate allows. Throws UsageError. */
export function parseRate(rate: unknown): number {
  const perSecond = typeof rate === 'string' && /^\d{1,9}$/.test(rate) ? Number(rate) : 0
  if (perSecond >= 1 && perSecond <= RATE_MAX) return perSecond
  const allowed = `an integer from 1 to ${RATE_MAX}`
  throw new UsageError(`--rate must be ${allowed}: it is ${JSON.stringify(rate)}`)
}
