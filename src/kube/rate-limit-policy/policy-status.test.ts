// The status of a RateLimitPolicy for each outcome and each number of limiters, and which
// generation is active.
import { expect, test } from '@jest/globals'
import type { PolicySpec } from '../../policies/policy.ts'
import { decidePolicyStatus, type ObservedPolicy } from './policy-status.ts'
import type { RateLimitPolicyStatus } from './rate-limit-policy.ts'

const metadata = { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '9', generation: 3 }
const spec: PolicySpec = {
  ...{ domain: 'd', match: [{ key: 'k' }], limits: [] },
  ...({ mode: 'Enforce', onStoreError: 'Local' } as const),
}
const observed: ObservedPolicy = {
  outcome: { accepted: true },
  activeGeneration: 3,
  accepted: { generation: 3, spec },
  active: 2,
  total: 2,
  isRejected: false,
  audit: undefined,
  expected: 0,
  nowMs: 0,
}
const conflict = { accepted: false, reason: 'Conflicted', message: 'the older policy a/b' } as const

const shownOf = ({ observedGeneration, replicas, conditions = [] }: RateLimitPolicyStatus) => {
  const shown = conditions.map((condition) => {
    const { type, status, reason, observedGeneration: of = 0 } = condition
    return `${type}=${status} ${reason}${of === observedGeneration ? '' : ` of ${of}`}`
  })
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
    { active: 1, isRejected: true },
    '3: 1/2, Accepted=True Accepted, Programmed=False Rejected, Stalled=True Rejected',
  ],
  [
    'a conflict',
    { outcome: conflict, activeGeneration: undefined },
    '3: 0/0, Accepted=False Conflicted, Programmed=False NotAccepted, Stalled=True Conflicted',
  ],
  [
    'a conflict while an earlier generation is active',
    { outcome: conflict, activeGeneration: 1 },
    '3: 2/2, Accepted=False Conflicted, Programmed=True Programmed of 1, Stalled=True Conflicted',
  ],
  [
    'a conflict while one of two limiters applies an earlier generation',
    { outcome: conflict, activeGeneration: 1, active: 1 },
    '3: 1/2, Accepted=False Conflicted, Programmed=False Pending of 1, Stalled=True Conflicted',
  ],
  [
    'API keys that are missing',
    { outcome: { accepted: true, reason: 'SecretNotFound', message: 'm' } },
    '3: 2/2, Accepted=True SecretNotFound, Programmed=True Programmed',
  ],
])('%s', (_name, given, expected) => {
  expect(shownOf(decidePolicyStatus({ metadata }, { ...observed, ...given }))).toBe(expected)
})

test('the condition Accepted has the message of the compiler', () => {
  const messageOf = (outcome: ObservedPolicy['outcome'], activeGeneration?: number) =>
    decidePolicyStatus({ metadata }, { ...observed, outcome, activeGeneration }).conditions?.[0]
      ?.message
  expect(messageOf(conflict)).toBe('the older policy a/b')
  expect(messageOf({ accepted: true, message: 'a warning' }, 3)).toBe('a warning')
  expect(messageOf(conflict, 1)).toBe(
    'the older policy a/b; the limits of generation 1 stay active',
  )
  const long = messageOf({ ...conflict, message: `x${'\u{1f600}'.repeat(1000)}` }, 1) ?? ''
  expect(long).toMatch(/…; the limits of generation 1 stay active$/)
  expect([long.length <= 1024, long.isWellFormed()]).toEqual([true, true])
})

test('only a policy with an active generation has an audit', () => {
  const audit = { wouldDeny: 3, startTime: '2026-01-01T00:00:00Z' }
  expect(statusOf({ audit }).audit).toEqual(audit)
  expect(statusOf({})).not.toHaveProperty('audit')
  expect(statusOf({ audit, activeGeneration: undefined })).not.toHaveProperty('audit')
})

test('the messages about limiters name the generation that is active', () => {
  const messageOf = (given: Partial<ObservedPolicy>) =>
    decidePolicyStatus({ metadata }, { ...observed, outcome: conflict, ...given }).conditions?.[1]
      ?.message
  expect(messageOf({ activeGeneration: 1 })).toBe('all limiters apply generation 1')
  expect(messageOf({ activeGeneration: 1, active: 1 })).toBe('1 of 2 limiters apply generation 1')
})

test('the status keeps the last accepted spec, even while the rules do not contain it', () => {
  const accepted = { generation: 1, spec }
  const status = statusOf({ outcome: conflict, activeGeneration: undefined, accepted })
  expect(status.accepted).toEqual(accepted)
  expect(statusOf({ accepted: undefined })).not.toHaveProperty('accepted')
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
    { active: 1, isRejected: true },
    '3: 1/2, Accepted=True Accepted, Programmed=False Rejected, Stalled=True Rejected',
  ],
  [
    'the limiters do not reconnect',
    { active: 0, total: 0, expected: 0 },
    '3: 0/0, Accepted=True Accepted, Programmed=False NoLimiters, Reconciling=True NoLimiters',
  ],
])('the status that a new leader decides if %s', (_name, given, expected) => {
  const before = statusOf({})
  const next = decidePolicyStatus(
    { metadata, status: before },
    { ...observed, expected: 2, nowMs: 60_000, ...given },
  )
  expect(shownOf(next)).toBe(expected)
  if (expected === PROGRAMMED) expect(next).toEqual(before)
})

test.each<readonly [string, Partial<ObservedPolicy>, string]>([
  ['no limiter has reconnected', { active: 0, total: 0 }, '3: 0/2'],
  ['one of two limiters has reconnected', { active: 1, total: 1 }, '3: 1/2'],
  ['a limiter rejects the rules', { active: 0, total: 1, isRejected: true }, '3: 0/2'],
  ['all have reconnected', {}, '3: 2/2'],
])('a changed or new policy waits for the limiters of the last leader: %s', (_, given, shown) => {
  const changed = statusOf({ activeGeneration: 2, accepted: { generation: 2, spec } })
  for (const status of [changed, undefined]) {
    const next = decidePolicyStatus(
      { metadata, ...(status && { status }) },
      { ...observed, expected: 2, ...given },
    )
    const cause = given.isRejected === true ? 'False Rejected' : 'False Pending'
    const programmed = shown === '3: 2/2' ? 'True Programmed' : cause
    expect(shownOf(next)).toContain(`${shown}, Accepted=True Accepted, Programmed=${programmed}`)
  }
})

test.each([
  [
    { active: 1, total: 2 },
    { active: 2, total: 2 },
  ],
  [
    { active: 2, total: 2 },
    { active: 2, total: 3 },
  ],
])('a new leader reports an increase of only one number: from %j to %j', (before, after) => {
  const given = { ...observed, expected: 2, ...after }
  const next = decidePolicyStatus({ metadata, status: statusOf(before) }, given)
  expect(next.replicas).toEqual(after)
})
