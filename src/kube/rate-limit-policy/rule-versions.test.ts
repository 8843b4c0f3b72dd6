// Which version contains which generation of a policy, even if the rules revert to an old version.
import { expect, test } from '@jest/globals'
import type { AcceptedSpec, Policy, PolicyOutcome } from '../../policies/policy.ts'
import { createRuleVersions } from './rule-versions.ts'

const accepted: PolicyOutcome = { accepted: true }
const spec = { match: [], limits: [], mode: 'Enforce', onStoreError: 'Local' } as const
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
      const outcomes = new Map<string, PolicyOutcome>()
      const active = new Map<string, AcceptedSpec>()
      for (const [name, given] of entries) {
        outcomes.set(`n/${name}`, typeof given === 'number' ? accepted : given)
        if (typeof given === 'number') active.set(`n/${name}`, { generation: given, spec })
      }
      versions.record(
        entries.map(([name, given]) => policyOf(name, typeof given === 'number' ? given : 1)),
        { version, resources: [], outcomes, active },
      )
    },
    versionsWith: (name: string) => {
      const since = versions.get(`n/${name}`)?.since ?? Infinity
      return [...new Set(seen)].filter((version) => versions.numberOf(version) >= since).join()
    },
  }
}

function policyOf(name: string, generation: number): Policy {
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

test('a policy is in every version from its last acceptance', () => {
  const { compile, versionsWith } = createRecord()
  compile('a', { p: 1 })
  compile('b', { p: rejected })
  compile('c', { p: 1 })
  expect(versionsWith('p')).toBe('c')
  compile('d', {})
  expect(versionsWith('p')).toBe('')
})

test('the spec that was accepted last stays known while it is not active', () => {
  const { compile, versions } = createRecord()
  const metadata = { namespace: 'n', name: 'p', uid: 'p', resourceVersion: '1' }
  const stored = { generation: 7, spec }
  const object = { metadata, spec, status: { accepted: stored } }
  expect(versions.lastAcceptedOf(object)).toBe(stored)
  compile('a', { p: 1 })
  compile('b', { p: rejected })
  expect(versions.get('n/p')).toMatchObject({ active: undefined, accepted: undefined })
  compile('c', { p: 2 })
  expect(versions.lastAcceptedOf(object)).toEqual({ generation: 2, spec })
  const recreated = { ...object, metadata: { ...metadata, uid: 'q' } }
  expect(versions.lastAcceptedOf(recreated)).toBe(stored)
})

test('a policy that does not change is the same object after a compilation', () => {
  const { compile, versions } = createRecord()
  compile('a', { p: 1, q: rejected })
  const before = ['n/p', 'n/q'].map(versions.get)
  compile('b', { p: 1, q: { ...rejected } })
  expect(['n/p', 'n/q'].map((key, at) => versions.get(key) === before[at])).toEqual([true, true])
})

test('a policy is in every version from the last change of its API keys', () => {
  const { versions } = createRecord()
  const active = new Map([['n/p', { generation: 1, spec }]])
  const sinceWith = (...hashes: string[]) => {
    const version = `with ${hashes.join()}`
    const outcomes = new Map([['n/p', accepted]])
    versions.record([{ ...policyOf('p', 1), apiKeys: { hashes } }], {
      ...{ version, resources: [], outcomes, active },
    })
    return versions.get('n/p')?.since
  }
  expect(['a', 'a', 'b'].map((hash) => sinceWith(hash))).toEqual([1, 1, 3])
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
