// Which version contains which generation of a policy, also when the rules return to a version.
import { expect, test } from '@jest/globals'
import type { Policy, PolicyOutcome } from '../../policies/policy.ts'
import { createRuleVersions } from './rule-versions.ts'

const accepted: PolicyOutcome = { accepted: true }
const rejected: PolicyOutcome = { accepted: false, reason: 'Conflicted', message: 'm' }

/** Records compilations, and lists the versions that contain the current state of a policy. */
function createRecord() {
  const versions = createRuleVersions()
  const seen: string[] = []
  return {
    versions,
    compile: (version: string, policies: Readonly<Record<string, number | PolicyOutcome>>) => {
      const entries = Object.entries(policies)
      seen.push(version)
      versions.record(
        entries.map(([name, given]) => policyOf(name, typeof given === 'number' ? given : 1)),
        {
          version,
          resources: [],
          outcomes: new Map(
            entries.map(([name, given]) => [
              `n/${name}`,
              typeof given === 'number' ? accepted : given,
            ]),
          ),
        },
      )
    },
    versionsWith: (name: string) => {
      const since = versions.get(`n/${name}`)?.since ?? Infinity
      return [...new Set(seen)].filter((version) => versions.numberOf(version) >= since).join()
    },
  }
}

function policyOf(name: string, generation: number): Policy {
  const spec = { match: [], limits: [], mode: 'Enforce', onStoreError: 'Local' } as const
  return { namespace: 'n', name, uid: name, createdMs: 0, generation, spec }
}

test('a change of one policy leaves the others in every later version', () => {
  const { compile, versionsWith } = createRecord()
  compile('a', { p: 1 })
  compile('b', { p: 1, q: 1 })
  compile('c', { p: 1, q: 2 })
  expect([versionsWith('p'), versionsWith('q')]).toEqual(['a,b,c', 'c'])
})

test('a version that is compiled a second time contains the newest generation', () => {
  const { compile, versionsWith, versions } = createRecord()
  compile('a', { p: 1 })
  compile('b', { p: 2 })
  expect(versionsWith('p')).toBe('b')
  compile('a', { p: 3 }) // the change is reverted
  expect(versionsWith('p')).toBe('a')
  compile('a', { p: 4 }) // a change without an effect
  expect([versionsWith('p'), versions.newest()]).toEqual(['a', 'a'])
})

test('a policy is in the versions since it was accepted', () => {
  const { compile, versionsWith } = createRecord()
  compile('a', { p: 1 })
  compile('b', { p: rejected })
  compile('c', { p: 1 })
  expect(versionsWith('p')).toBe('c')
  compile('d', {})
  expect(versionsWith('p')).toBe('')
})

test('a version that was never compiled contains nothing', () => {
  const { compile, versions } = createRecord()
  compile('a', { p: 1 })
  expect([versions.numberOf(''), versions.numberOf('x')]).toEqual([0, 0])
})

test('the number of recorded versions is bounded', () => {
  const { compile, versions } = createRecord()
  for (let at = 0; at < 1500; at++) compile(`v${at}`, { p: 1 })
  expect([versions.numberOf('v0'), versions.numberOf('v499')]).toEqual([0, 0])
  expect([versions.numberOf('v500'), versions.numberOf('v1499')]).toEqual([501, 1500])
})
