// The last accepted spec of a policy stays active, whatever the order of edits, compilations,
// writes of statuses and of the last version, and changes of the leader. Explores random orders; a
// failure prints the seed.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Compilation, compile, createCompiler } from '../../policies/compile.ts'
import type { Policy, PolicySpec } from '../../policies/policy.ts'
import { POLICY_GRANTS, PolicyWorld } from '../../../test/kit/policies/policy-world.ts'
import { decodeAccepted, encodeAccepted } from './accepted-specs.ts'
import type { RateLimitPolicySpec } from './rate-limit-policy.ts'
import { createPolicyReports } from './report-policies.ts'
import { createRuleVersions } from './rule-versions.ts'
import { policyOf } from './watch-policies.ts'

const limit = { name: 'l', algorithm: 'FixedWindow', requests: 1, window: '1s' } as const
const base = { domain: 'd', mode: 'Enforce', onStoreError: 'Local' } as const
const specOf = (key: string): RateLimitPolicySpec => ({
  ...base,
  match: [{ key }],
  limits: [limit],
})
/** Valid specs, some of which conflict; invalid and foreign ones. */
const SPECS: readonly RateLimitPolicySpec[] = [
  ...['a', 'b', 'c'].map(specOf),
  { ...specOf('a'), match: [{ key: 'a' }, { key: 'k'.repeat(200) }] },
  { ...specOf('a'), limits: [{ ...limit, requests: 2 }] },
  { ...specOf('a'), replaces: ['l'] },
  { ...specOf('b'), domain: 'other' },
]
/** A spec that fills the share of the namespace. */
const LARGE = { ...specOf('b'), match: Array.from({ length: 4 }, () => ({ key: 'k'.repeat(120) })) }

type Step =
  | { readonly kind: 'edit'; readonly at: number; readonly spec: RateLimitPolicySpec }
  | { readonly kind: 'compile' | 'change leader'; readonly isStored: boolean }
  | { readonly kind: 'write'; readonly result: 'ok' | 'lost' | 'fails' }

const editsTo = (specs: readonly RateLimitPolicySpec[]) =>
  fc.record({
    kind: fc.constant('edit' as const),
    at: fc.nat({ max: 2 }),
    spec: fc.constantFrom(...specs),
  })
const writes = fc.record({
  kind: fc.constant('write' as const),
  result: fc.constantFrom('ok' as const, 'ok' as const, 'lost' as const, 'fails' as const),
})
const compilationsOf = (kind: 'compile' | 'change leader') =>
  fc.record({ kind: fc.constant(kind), isStored: fc.boolean() })
const stepsWith = (edits: ReturnType<typeof editsTo>, leaders: number): fc.Arbitrary<Step> =>
  fc.oneof(
    { weight: 4, arbitrary: edits },
    { weight: 5, arbitrary: compilationsOf('compile') },
    { weight: 4, arbitrary: writes },
    { weight: leaders, arbitrary: compilationsOf('change leader') },
  )

const RUNS = 60
const { signal } = new AbortController()

/** What survives a leader, except statuses. */
interface Stored {
  /** The specs in the Secret of the last version, as bytes. */
  accepted: Buffer
  /** The generations that a leader accepted in versions that were stored. */
  readonly generations: Map<string, number>
  /** Policies without limits because an older one has displaced them. */
  readonly displaced: Set<string>
}

const createStored = async (): Promise<Stored> => ({
  accepted: await encodeAccepted([]),
  generations: new Map(),
  displaced: new Set(),
})

async function startLeader(world: PolicyWorld, stored: Stored) {
  const { displaced } = stored
  const versions = createRuleVersions(await decodeAccepted(stored.accepted))
  /** The generations that must not be lost. */
  const known = new Map(stored.generations)
  const compiler = createCompiler(POLICY_GRANTS)
  const reports = createPolicyReports({ ...world.reportDeps, versions, limiters: () => [] })
  return {
    reports,
    versions,
    async compile(isStored: boolean) {
      const policies = world
        .list()
        .map((policy) => policyOf(policy, [], versions.lastAcceptedOf(policy)))
      const compiled = compiler(policies)
      const { version, outcomes } = compile(policies, POLICY_GRANTS)
      expect(compiled).toMatchObject({ version, outcomes }) // the cache has no effect
      versions.record(policies, compiled)
      for (const { metadata, status } of world.list()) {
        const key = `n/${metadata.name}`
        known.set(key, Math.max(known.get(key) ?? 0, status?.accepted?.generation ?? 0))
      }
      const kept = verify(policies, compiled, { known, displaced })
      for (const [key, { generation }] of compiled.active) known.set(key, generation)
      if (isStored) {
        stored.accepted = await encodeAccepted(versions.unreported(world.list()))
        for (const [key, { generation }] of compiled.active) stored.generations.set(key, generation)
      }
      return { kept, compiled }
    },
  }
}

/**
 * Fails if a policy that was accepted is not active, unless an older policy has the same match, or
 * has displaced it: between two compilations, both were edited to the same match while the share of
 * the namespace was full. The result is as if the younger edit had been accepted first.
 */
function verify(
  policies: readonly Policy[],
  { active }: Compilation,
  given: { readonly known: ReadonlyMap<string, number>; readonly displaced: Set<string> },
): number {
  const { known, displaced } = given
  let kept = 0
  for (const { uid, spec, accepted, createdMs, generation } of policies) {
    const least = known.get(uid) ?? 0
    const own = active.get(uid)?.generation ?? 0
    const matchOf = (of: PolicySpec | undefined) => JSON.stringify(of?.match ?? uid)
    const older = policies.filter((each) => each.createdMs < createdMs)
    const isTaken = older.some((each) => {
      const taken = active.get(each.uid)
      if (matchOf(taken?.spec) === matchOf(accepted?.spec)) return true
      const isNew = (taken?.generation ?? 0) > (known.get(each.uid) ?? 0)
      if (isNew && matchOf(taken?.spec) === matchOf(spec)) displaced.add(uid)
      return false
    })
    if (own > 0) displaced.delete(uid)
    if (!isTaken && !displaced.has(uid)) expect(own).toBeGreaterThanOrEqual(least)
    if (own > 0 && own < generation) kept++
  }
  return kept
}

test.each<readonly [string, fc.Arbitrary<Step>]>([
  ['new leaders', stepsWith(editsTo(SPECS), 1)],
  // Without new leaders, which could read an older, larger generation that exceeds the share.
  ['a share that is full', stepsWith(editsTo([...SPECS, LARGE]), 0)],
])('an accepted policy stays active through edits, failed writes and %s', async (_name, steps) => {
  let kept = 0
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 20, maxLength: 40 }), async (all) => {
      const world = new PolicyWorld(['p0', 'p1', 'p2'].map((name) => [name, specOf(name)]))
      const stored = await createStored()
      let leader = await startLeader(world, stored)
      for (const step of all) {
        if (step.kind === 'edit') world.edit(`p${step.at}`, step.spec)
        if (step.kind === 'change leader') leader = await startLeader(world, stored)
        if (step.kind === 'compile' || step.kind === 'change leader')
          kept += (await leader.compile(step.isStored)).kept
        if (step.kind !== 'write') continue
        world.result = step.result
        const [key] = leader.reports.outdated()
        if (key !== undefined) await leader.reports.write(key, signal).catch(() => undefined)
      }
      // At rest, every status is written once, and a new leader compiles the same rules.
      world.result = 'ok'
      const { compiled } = await leader.compile(false)
      for (const key of leader.reports.outdated()) await leader.reports.write(key, signal)
      expect(leader.reports.outdated()).toEqual([])
      const next = await startLeader(world, stored)
      expect((await next.compile(false)).compiled.version).toBe(compiled.version)
      expect(next.reports.outdated()).toEqual([])
    }),
    { numRuns: RUNS },
  )
  expect(kept).toBeGreaterThan(RUNS) // the last accepted spec was needed
})
