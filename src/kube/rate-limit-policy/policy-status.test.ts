// The status of a RateLimitPolicy for each outcome and each number of limiters.
import { expect, test } from '@jest/globals'
import { decidePolicyStatus, type ObservedPolicy } from './policy-status.ts'
import type { RateLimitPolicyStatus } from './rate-limit-policy.ts'

const metadata = { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '9', generation: 3 }
const observed: ObservedPolicy = {
  outcome: { accepted: true },
  active: 2,
  total: 2,
  rejection: undefined,
  isSettling: false,
  nowMs: 0,
}
const conflict = { accepted: false, reason: 'Conflicted', message: 'the older policy a/b' } as const

const shownOf = ({ observedGeneration, replicas, conditions = [] }: RateLimitPolicyStatus) => {
  const shown = conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`)
  const { active = 0, total = 0 } = replicas ?? {}
  return [`${observedGeneration ?? 0}: ${active}/${total}`, ...shown].join(', ')
}

test.each<readonly [string, Partial<ObservedPolicy>, string]>([
  ['all limiters', {}, '3: 2/2, Accepted=True Accepted, Programmed=True Programmed'],
  [
    'one of two limiters',
    { active: 1 },
    '3: 1/2, Accepted=True Accepted, Programmed=False Pending, Reconciling=True Pending',
  ],
  [
    'no limiter',
    { active: 0, total: 0 },
    '3: 0/0, Accepted=True Accepted, Programmed=False NoLimiters, Reconciling=True NoLimiters',
  ],
  [
    'a limiter that rejects the rules',
    { active: 1, rejection: 'no' },
    '3: 1/2, Accepted=True Accepted, Programmed=False Rejected, Stalled=True Rejected',
  ],
  [
    'a conflict',
    { outcome: conflict, active: 0 },
    '3: 0/2, Accepted=False Conflicted, Programmed=False NotAccepted, Stalled=True Conflicted',
  ],
])('%s', (_name, given, expected) => {
  expect(shownOf(decidePolicyStatus({ metadata }, { ...observed, ...given }))).toBe(expected)
})

test('the condition Accepted has the message of the compiler', () => {
  const messageOf = (outcome: ObservedPolicy['outcome']) =>
    decidePolicyStatus({ metadata }, { ...observed, outcome }).conditions?.[0]?.message
  expect(messageOf(conflict)).toBe('the older policy a/b')
  expect(messageOf({ accepted: true, message: 'a warning' })).toBe('a warning')
})

const statusOf = (given: Partial<ObservedPolicy>) =>
  decidePolicyStatus({ metadata }, { ...observed, ...given })
const PROGRAMMED = '3: 2/2, Accepted=True Accepted, Programmed=True Programmed'

test.each<readonly [string, Partial<ObservedPolicy>, string]>([
  ['no limiter has reconnected', { active: 0, total: 0 }, PROGRAMMED],
  ['one limiter has reconnected', { active: 1, total: 1 }, PROGRAMMED],
  ['more limiters are connected', { active: 3, total: 3 }, PROGRAMMED.replace('2/2', '3/3')],
  [
    'a limiter rejects the rules',
    { active: 1, rejection: 'no' },
    '3: 1/2, Accepted=True Accepted, Programmed=False Rejected, Stalled=True Rejected',
  ],
  [
    'the limiters do not reconnect',
    { active: 0, total: 0, isSettling: false },
    '3: 0/0, Accepted=True Accepted, Programmed=False NoLimiters, Reconciling=True NoLimiters',
  ],
])('the status that a new leader decides if %s', (_name, given, expected) => {
  const before = statusOf({})
  const next = decidePolicyStatus(
    { metadata, status: before },
    { ...observed, isSettling: true, nowMs: 60_000, ...given },
  )
  expect(shownOf(next)).toBe(expected)
  if (expected === PROGRAMMED) expect(next).toEqual(before)
})

test('a new leader does not keep the numbers of another generation', () => {
  const status = { ...statusOf({}), observedGeneration: 2 }
  const next = decidePolicyStatus(
    { metadata, status },
    { ...observed, active: 0, total: 1, isSettling: true },
  )
  expect(shownOf(next)).toContain('3: 0/1, Accepted=True Accepted, Programmed=False Pending')
})
