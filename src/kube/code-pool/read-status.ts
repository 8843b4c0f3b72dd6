// What the status of a CodePool records of its refills and of its problems.
import type { RefillHistory } from '../../codes/refill-sight.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'

/** What a status says of the refills so far. */
export function historyOf({ status = {} }: CodePool): RefillHistory {
  const { refills = 0, failures = 0, lastRefill } = status
  if (lastRefill === undefined) return { begun: refills, failures, last: null }
  const { refill, job, inputs, outcome, startedAt, finishedAt } = lastRefill
  const { reason = '', message = '' } = lastRefill
  const last = {
    refill,
    job,
    inputs,
    outcome,
    startedMs: Date.parse(startedAt),
    finishedMs: Date.parse(finishedAt),
    reason,
    message,
  }
  return { begun: refills, failures, last }
}

/** What a status says of what is wrong. */
export function degradedOf(status: CodePoolStatus | undefined) {
  return status?.conditions?.find(({ type }) => type === 'Degraded')
}
