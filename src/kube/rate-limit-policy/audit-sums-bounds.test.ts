// When a status reports what a policy in mode Audit would have denied, and which policy the hits of
// a rule count for: bounds that the random tests of audit-sums.test.ts do not hit exactly.
import { beforeEach, expect, test } from '@jest/globals'
import { ruleIdsOf } from '../../policies/rule-ids.ts'
import { keyOf } from '../objects.ts'
import { AUDIT_WRITE_MS, type AuditSums, createAuditSums } from './audit-sums.ts'
import type { RateLimitPolicy, RateLimitPolicySpec } from './rate-limit-policy.ts'
import { createRuleVersions, type RuleVersions } from './rule-versions.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const STARTED = '2025-12-31T00:00:00Z'
const specOf = (key: string): RateLimitPolicySpec => ({
  ...({ domain: 'd', mode: 'Audit', onStoreError: 'Local' } as const),
  match: [{ key }],
  limits: [{ name: 'l', algorithm: 'FixedWindow', requests: 1, window: '1s' }],
})
const ruleOf = (key: string) => ruleIdsOf(specOf(key), undefined)[0] ?? ''

let nowMs: number
let policies: RateLimitPolicy[]
let versions: RuleVersions
let sums: AuditSums

beforeEach(() => {
  nowMs = NOW
  policies = []
  startLeader()
})

function startLeader(): void {
  versions = createRuleVersions()
  sums = createAuditSums({
    policies: {
      list: () => policies,
      get: (key) => policies.find((policy) => keyOf(policy) === key),
    },
    versions,
    ...{ nowMs: () => nowMs, wallMs: () => nowMs },
  })
}

/** Adds or replaces a policy. */
function put(name: string, metadata: object = {}, more: Partial<RateLimitPolicy> = {}): void {
  const policy: RateLimitPolicy = {
    metadata: {
      ...{ name, namespace: 'n', uid: name, resourceVersion: '1', generation: 1 },
      ...{ creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
    },
    spec: specOf(name),
    ...more,
  }
  policies = [...policies.filter((other) => keyOf(other) !== keyOf(policy)), policy]
}

/** Records a compilation that contains all policies, also those with the same rules. */
function compile(): void {
  const given = policies.map(({ metadata, spec }) => {
    const { namespace, name, uid, generation = 0 } = metadata
    return { namespace, name, uid, generation, createdMs: 0, spec }
  })
  versions.record(given, {
    ...{ version: 'v', resources: [] },
    outcomes: new Map(given.map(({ name }) => [`n/${name}`, { accepted: true }])),
    active: new Map(given.map(({ name, generation, spec }) => [`n/${name}`, { generation, spec }])),
  })
}

/** Reports `wouldDeny` in the status of the policy `p`, as the leader wrote it. */
const show = (wouldDeny: number, generation = 1) => {
  const accepted = { generation, spec: specOf('p') }
  put('p', { generation }, { status: { accepted, audit: { wouldDeny, startTime: STARTED } } })
}
const add = (key: string, hits: number) => sums.add([{ rule: ruleOf(key), hits }])
const statusOf = (name = 'p') => {
  const policy = policies.find(({ metadata }) => metadata.name === name)
  const compiled = versions.get(`n/${name}`)
  if (policy === undefined || compiled === undefined) throw new Error(`no policy ${name}`)
  return sums.statusOf(policy, compiled)
}

test('the first hits are due immediately', () => {
  put('p')
  compile()
  const startTime = '2026-01-01T00:00:00Z'
  expect(statusOf()).toEqual({ wouldDeny: 0, startTime })
  nowMs += 1000
  expect([add('p', 1), sums.nextDueMs()]).toEqual([true, undefined])
  const lastObservedTime = '2026-01-01T00:00:01Z'
  expect(statusOf()).toEqual({ wouldDeny: 1, startTime: lastObservedTime, lastObservedTime })
})

test('hits of unknown rules are ignored', () => {
  put('p')
  compile()
  expect([add('other', 1), statusOf()?.wouldDeny]).toEqual([false, 0])
})

test('an increase of 10 % is written 5 minutes after the last one, a smaller one never', () => {
  show(100)
  compile()
  const before = { wouldDeny: 100, startTime: STARTED }
  expect(add('p', 9)).toBe(false)
  expect([statusOf(), sums.nextDueMs()]).toEqual([before, undefined])
  expect(add('p', 1)).toBe(false)
  expect([statusOf(), sums.nextDueMs()]).toEqual([before, NOW + AUDIT_WRITE_MS])
  nowMs += AUDIT_WRITE_MS - 1
  expect([add('p', 1), statusOf()]).toEqual([false, before])
  nowMs += 1
  expect(add('p', 1)).toBe(true)
  const lastObservedTime = '2026-01-01T00:05:00Z'
  expect(statusOf()).toEqual({ wouldDeny: 112, startTime: STARTED, lastObservedTime })
})

test('a sum that is written is due only after it increases', () => {
  show(100)
  compile()
  add('p', 10)
  nowMs += AUDIT_WRITE_MS
  expect(statusOf()?.wouldDeny).toBe(110)
  show(110)
  expect([statusOf()?.wouldDeny, sums.nextDueMs()]).toEqual([110, undefined])
  add('p', 20)
  expect(sums.nextDueMs()).toBe(nowMs + AUDIT_WRITE_MS)
})

test('the sum of a previous leader is never reduced', () => {
  show(100)
  compile()
  add('p', 50)
  show(200) // by a leader that has lost the Lease
  nowMs += AUDIT_WRITE_MS
  add('p', 20)
  nowMs += AUDIT_WRITE_MS
  expect(statusOf()?.wouldDeny).toBe(220)
})

test('a sum has a maximum', () => {
  put('p')
  compile()
  add('p', Number.MAX_SAFE_INTEGER)
  add('p', 1)
  expect(statusOf()?.wouldDeny).toBe(Number.MAX_SAFE_INTEGER)
})

test('a new generation starts at 0', () => {
  show(100)
  compile()
  add('p', 50)
  put('p', { generation: 2 }, { status: policies[0]?.status ?? {} })
  compile()
  expect(statusOf()).toMatchObject({ wouldDeny: 0, startTime: '2026-01-01T00:00:00Z' })
  expect(add('p', 1)).toBe(true)
  expect(statusOf()?.wouldDeny).toBe(1)
})

test('a recreated policy starts at 0', () => {
  put('p')
  compile()
  add('p', 5)
  put('p', { uid: 'other' })
  expect(add('p', 1)).toBe(false) // the rules are those of the deleted policy
  compile()
  expect([add('p', 1), statusOf()?.wouldDeny]).toEqual([true, 1])
})

test('a policy that is not in mode Audit has no sum', () => {
  show(100)
  compile()
  add('p', 50)
  expect(sums.nextDueMs()).toBe(NOW + AUDIT_WRITE_MS)
  put('p', { generation: 2 }, { spec: { ...specOf('p'), mode: 'Enforce' } })
  compile()
  expect(statusOf()).toBeUndefined()
  expect([add('p', 1), sums.nextDueMs()]).toEqual([false, undefined])
})

test.each([
  ['the older one', { name: 'b', creationTimestamp: '2025-01-01T00:00:00Z' }, 'b'],
  ['the older one', { name: 'b', creationTimestamp: '2027-01-01T00:00:00Z' }, 'a'],
  ['the first by name', { name: 'b' }, 'a'],
])('of two policies with the same rule, the hits count for %s', (_name, metadata, owner) => {
  for (const isReversed of [false, true]) {
    policies = []
    startLeader()
    put('a', {}, { spec: specOf('shared') })
    put('b', metadata, { spec: specOf('shared') })
    if (isReversed) policies.reverse()
    compile()
    add('shared', 7)
    const denied = ['a', 'b'].map((name) => statusOf(name)?.wouldDeny)
    expect(denied).toEqual(owner === 'a' ? [7, 0] : [0, 7])
  }
})
