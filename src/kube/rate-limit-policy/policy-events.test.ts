// The events and log entries of changed conditions of RateLimitPolicies.
import { expect, test } from '@jest/globals'
import { PolicyWorld } from '../../../test/kit/policies/policy-world.ts'
import { createCompiler } from '../../policies/compile.ts'
import type { EventInput } from '../events.ts'
import type { RateLimitPolicySpec } from './rate-limit-policy.ts'
import { createPolicyReports } from './report-policies.ts'
import { createRuleVersions } from './rule-versions.ts'
import { policyOf } from './watch-policies.ts'

const GRANTS = [{ domain: 'd', namespaces: ['n'], apiKeys: true }]
const specOf = (match: RateLimitPolicySpec['match']): RateLimitPolicySpec => ({
  ...{ domain: 'd', match },
  ...({ mode: 'Enforce', onStoreError: 'Local' } as const),
  limits: [{ name: 'l', algorithm: 'FixedWindow', requests: 1, window: '1s' }],
})

/** Writes the first status of each policy; returns the events and log entries. */
async function report(policies: readonly (readonly [string, RateLimitPolicySpec])[]) {
  const world = new PolicyWorld(policies)
  const versions = createRuleVersions()
  const compilation = createCompiler(GRANTS)(
    world.list().map((policy) => policyOf(policy, [], undefined)),
  )
  versions.record(compilation.policies, compilation)
  const events: EventInput[] = []
  const logged: unknown[] = []
  const reports = createPolicyReports({
    ...world.reportDeps,
    versions,
    limiters: () => [{ node: 'l', address: '', active: compilation.version, rejected: undefined }],
    events: { emit: (event) => events.push(event) },
    log: {
      info: (_fields: unknown, message?: string) => logged.push(message),
      warn: (fields: unknown, message?: string) => logged.push([message, fields]),
    },
  })
  for (const key of reports.outdated()) await reports.write(key, new AbortController().signal)
  return { events, logged }
}
const shownOf = ({ regarding, type, reason, action }: EventInput) =>
  [regarding.name, type, reason, action].join(' ')

test('an accepted policy has an event for each condition', async () => {
  const { events, logged } = await report([['a', specOf([{ key: 'k' }])]])
  expect(events.map(shownOf)).toEqual(['a Normal Accepted Compile', 'a Normal Programmed Send'])
  expect(events[1]).toMatchObject({
    regarding: { kind: 'RateLimitPolicy', namespace: 'n', name: 'a', uid: 'n/a' },
    note: 'all limiters apply the policy',
  })
  expect(logged).toEqual(['policy programmed'])
})

test('a policy that is not accepted has a warning with the cause', async () => {
  const spec = specOf([{ key: 'k' }])
  const { events, logged } = await report([
    ['a', spec],
    ['b', spec],
  ])
  expect(events.map(shownOf)[2]).toBe('b Warning Conflicted Compile')
  const detail = events[2]?.note
  expect(detail).toContain('n/a')
  const fields = { namespace: 'n', policy: 'b', reason: 'Conflicted', detail }
  expect(logged).toEqual(['policy programmed', ['policy not accepted', fields]])
})

test('a policy that lacks API keys has a warning, although it is accepted', async () => {
  const match = [{ key: 'api_key', secretRef: { name: 'partners' } }]
  const { events, logged } = await report([['a', specOf(match)]])
  expect(events.map(shownOf)).toEqual([
    'a Warning SecretNotFound Compile',
    'a Normal Programmed Send',
  ])
  const [event] = events
  expect(event?.note).toContain('Secret "partners" not found')
  const fields = { namespace: 'n', policy: 'a', reason: 'SecretNotFound', detail: event?.note }
  expect(logged).toEqual([['policy lacks API keys', fields], 'policy programmed'])
})
