// Reads the refill history and the problem from the status of a CodePool.
import type { RefillHistory } from '../../codes/observed-state.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'

/** The refill history in a status. */
export function historyOf({ status = {} }: CodePool): RefillHistory {
  const { refills = 0, failures = 0, lastRefill } = status
  if (lastRefill === undefined) return { started: refills, failures, last: null }
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
  return { started: refills, failures, last }
}

/** The Degraded condition of a status. */
export function degradedOf(status: CodePoolStatus | undefined) {
  return status?.conditions?.find(({ type }) => type === 'Degraded')
}
