// The specs that were accepted last, as a new leader and the Secret get them.
import { expect, test } from '@jest/globals'
import type { AcceptedSpec, Policy, PolicyOutcome } from '../../policies/policy.ts'
import type { RateLimitPolicy } from './rate-limit-policy.ts'
import { createRuleVersions, type RuleVersions } from './rule-versions.ts'

const spec = { match: [], limits: [], mode: 'Enforce', onStoreError: 'Local' } as const
const objectOf = (uid: string, accepted?: AcceptedSpec): RateLimitPolicy => ({
  metadata: { namespace: 'n', name: 'p', uid, resourceVersion: '1' },
  spec,
  ...(accepted !== undefined && {
    status: { accepted: { generation: accepted.generation, spec } },
  }),
})
const generation = (of: number): AcceptedSpec => ({ generation: of, spec })

interface Compiled extends Partial<Policy> {
  readonly active?: AcceptedSpec
}

/** Records a compilation of the policy `n/p`. */
function record(versions: RuleVersions, { active, ...policy }: Compiled = {}) {
  const outcome: PolicyOutcome = { accepted: true }
  const defaults = { namespace: 'n', name: 'p', uid: 'p', createdMs: 0, generation: 1, spec }
  versions.record([{ ...defaults, ...policy }], {
    ...{ version: 'v', resources: [], outcomes: new Map([['n/p', outcome]]) },
    active: new Map(active === undefined ? [] : [['n/p', active]]),
  })
  return versions.get('n/p')
}

test.each<readonly [number | undefined, number, number]>([
  [undefined, 2, 2],
  [1, 2, 2],
  [2, 2, 2],
  [3, 2, 3],
])('of the accepted generations %p in the status and %i in the Secret, %i counts', (...row) => {
  const [shown, stored, expected] = row
  const versions = createRuleVersions(new Map([['p', { uid: 'p', ...generation(stored) }]]))
  const object = objectOf('p', shown === undefined ? undefined : generation(shown))
  expect(versions.lastAcceptedOf(object)).toEqual(generation(expected))
  expect(versions.lastAcceptedOf(objectOf('other'))).toBeUndefined()
})

test('only specs that no status contains are unreported', () => {
  const versions = createRuleVersions()
  expect(versions.unreported([objectOf('p')])).toEqual([])
  record(versions)
  expect(versions.unreported([objectOf('p')])).toEqual([])
  record(versions, { active: generation(2), generation: 2 })
  const unreported = [{ uid: 'p', ...generation(2) }]
  expect(versions.unreported([objectOf('p')])).toEqual(unreported)
  expect(versions.unreported([objectOf('p', generation(1))])).toEqual(unreported)
  expect(versions.unreported([objectOf('p', generation(2))])).toEqual([])
  expect(versions.unreported([objectOf('other')])).toEqual([])
})

test('a recreated policy is in the rules from its first compilation', () => {
  const versions = createRuleVersions()
  expect(versions.newest()).toBe('')
  record(versions, { active: generation(1) })
  expect(record(versions, { active: generation(1) })?.since).toBe(1)
  expect(record(versions, { active: generation(1), uid: 'other' })?.since).toBe(3)
  expect(versions.newest()).toBe('v')
})

test('a policy that is not accepted keeps its accepted spec with those API keys', () => {
  const versions = createRuleVersions()
  const accepted = { ...generation(1), apiKeys: { hashes: ['old'] } }
  const given = { generation: 2, accepted, apiKeys: { hashes: ['new'] } }
  expect(record(versions, { ...given, active: generation(1) })).toMatchObject({
    ...{ active: generation(1), accepted: generation(1), hashes: ['old'] },
  })
  expect(record(versions, { ...given, active: generation(2) })?.hashes).toEqual(['new'])
  const inactive = record(versions, given)
  expect(inactive).toMatchObject({ active: undefined, accepted: generation(1) })
  expect(inactive?.accepted).not.toHaveProperty('apiKeys')
})

test('a compilation without an outcome of a policy is a defect', () => {
  const policy = { namespace: 'n', name: 'p', uid: 'p', createdMs: 0, generation: 1, spec }
  const compilation = { version: 'v', resources: [], outcomes: new Map(), active: new Map() }
  expect(() => {
    createRuleVersions().record([policy], compilation)
  }).toThrow('no outcome of n/p')
})
