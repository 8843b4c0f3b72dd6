// What policies in mode Audit would have denied, from limiters to the status: whatever is lost, the
// status never reports more than was counted. Explores random orders; a failure prints the seed.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { AuditCounts, parseAuditCounts } from '../../limiter/stats/audit-counts.ts'
import { listRules } from '../../limits/rule-tree.ts'
import type { Rule } from '../../limits/rule.ts'
import { compile } from '../../policies/compile.ts'
import { POLICY_GRANTS, PolicyWorld } from '../../../test/kit/policies/policy-world.ts'
import { rulesOf } from '../../../test/kit/policies/random-policies.ts'
import { AUDIT_WRITE_MS } from './audit-sums.ts'
import type { RateLimitPolicySpec } from './rate-limit-policy.ts'
import { createPolicyReports } from './report-policies.ts'
import { createRuleVersions, type RuleVersions } from './rule-versions.ts'
import { policyOf } from './watch-policies.ts'

type Mode = RateLimitPolicySpec['mode']

const { signal } = new AbortController()
const NAMES = ['a', 'b'] as const
/** Each edit has a different number of requests, so that the rules of all generations differ. */
const specOf = (key: string, mode: Mode, requests: number): RateLimitPolicySpec => ({
  ...({ domain: 'd', mode, onStoreError: 'Local' } as const),
  match: [{ key }],
  limits: [{ name: 'l', algorithm: 'FixedWindow', requests, window: '1s' }],
})

/** Policies, limiters with reports in flight, and the leader. */
class AuditWorld {
  readonly policies = new PolicyWorld(NAMES.map((name) => [name, specOf(name, 'Audit', 1)]))
  /** The hits that limiters counted, by policy and generation. */
  readonly counted = new Map<string, number>()
  /** Whether hits may be missing in the status. */
  isLossy = false
  readonly #limiters = [0, 1].map(() => ({ counts: new AuditCounts(), inFlight: [] as string[][] }))
  #leader = this.#startLeader()
  #edits = 1

  #startLeader() {
    const versions = createRuleVersions()
    const limiter = { node: 'l', address: '10.0.0.1', rejected: undefined }
    const reports = createPolicyReports({
      ...this.policies.reportDeps,
      versions,
      limiters: () => [{ ...limiter, active: versions.newest() }],
    })
    return { reports, versions, rules: this.#compile(versions) }
  }

  #compile(versions: RuleVersions): readonly Rule[] {
    const all = this.policies.list().map((policy) => {
      return policyOf(policy, [], versions.lastAcceptedOf(policy))
    })
    const compilation = compile(all, POLICY_GRANTS)
    versions.record(all, compilation)
    return listRules(rulesOf(compilation))
  }

  deny(at: number, name: string, hits: number): void {
    const rule = this.#leader.rules.find(({ path }) => path === `d.${name}`)
    if (rule?.isShadow !== true) return
    this.#limiters[at]?.counts.count(rule, hits)
    const key = this.keyOf(name)
    this.counted.set(key, (this.counted.get(key) ?? 0) + hits)
  }

  send(at: number): void {
    const limiter = this.#limiters[at]
    const names = limiter?.counts.take() ?? []
    if (names.length > 0) limiter?.inFlight.push([...names])
  }

  deliver(at: number): boolean {
    const names = this.#limiters[at]?.inFlight.shift()
    return names !== undefined && this.#leader.reports.addAudit(parseAuditCounts(names) ?? [])
  }

  disconnect(at: number): void {
    const lost = this.#limiters[at]?.inFlight.splice(0)
    if (lost?.length !== 0) this.isLossy = true
  }

  restart(at: number): void {
    this.send(at)
    this.disconnect(at)
  }

  changeLeader(): void {
    for (const at of this.#limiters.keys()) this.disconnect(at)
    this.isLossy = true // hits that the status does not report yet are lost
    this.#leader = this.#startLeader()
  }

  edit(name: string, mode: Mode): void {
    this.#edits++
    this.policies.edit(name, specOf(name, mode, this.#edits))
    this.#leader = { ...this.#leader, rules: this.#compile(this.#leader.versions) }
  }

  /** Writes what is due. Returns the policies whose status was written. */
  async write(result: PolicyWorld['result']): Promise<readonly string[]> {
    this.policies.result = result
    const keys = this.#leader.reports.outdated()
    for (const key of keys) await this.#leader.reports.write(key, signal).catch(() => undefined)
    return keys
  }

  get nextChangeMs() {
    return this.#leader.reports.nextChangeMs()
  }

  /** The policy with its generation. */
  keyOf(name: string): string {
    const policy = this.policies.list().find(({ metadata }) => metadata.name === name)
    return `${name} ${policy?.metadata.generation ?? 0}`
  }

  /** The audits that the statuses report, by policy and generation. */
  shown() {
    return this.policies.list().flatMap(({ metadata, status }) => {
      const generation = status?.accepted?.generation ?? 0
      return status?.audit ? [{ key: `${metadata.name} ${generation}`, ...status.audit }] : []
    })
  }
}

interface Step {
  readonly label: string
  readonly run: (world: AuditWorld) => unknown
}

const at = fc.nat({ max: 1 })
const name = fc.constantFrom(...NAMES)
const stepsOf = <T>(
  weight: number,
  given: fc.Arbitrary<T>,
  step: (value: T) => readonly [string, Step['run']],
) => {
  const toStep = (value: T): Step => {
    const [label, run] = step(value)
    return { label, run }
  }
  return { weight, arbitrary: given.map(toStep) }
}
const STEPS_MAX = 60
/** `losses`: the weight of each step that loses reports. */
const stepsWith = (losses: number) =>
  fc.oneof(
    stepsOf(8, fc.tuple(at, name, fc.constantFrom(1, 3, 100)), ([on, of, hits]) => [
      `limiter ${on} counts ${hits} of ${of}`,
      (world) => {
        world.deny(on, of, hits)
      },
    ]),
    stepsOf(5, at, (on) => [
      `limiter ${on} sends`,
      (world) => {
        world.send(on)
      },
    ]),
    stepsOf(5, at, (on) => [`report of ${on} arrives`, (world) => world.deliver(on)]),
    stepsOf(losses, at, (on) => [
      `limiter ${on} disconnects`,
      (world) => {
        world.disconnect(on)
      },
    ]),
    stepsOf(losses, at, (on) => [
      `limiter ${on} restarts`,
      (world) => {
        world.restart(on)
      },
    ]),
    stepsOf(losses, fc.constant(0), () => [
      'the leader changes',
      (world) => {
        world.changeLeader()
      },
    ]),
    stepsOf(3, fc.tuple(name, fc.constantFrom<Mode>('Audit', 'Enforce')), ([of, mode]) => [
      `${of} has mode ${mode}`,
      (world) => {
        world.edit(of, mode)
      },
    ]),
    stepsOf(5, fc.constantFrom<PolicyWorld['result'][]>('ok', 'ok', 'lost', 'fails'), (result) => [
      `write: ${result}`,
      (world) => world.write(result),
    ]),
    stepsOf(2, fc.constantFrom(60_000, AUDIT_WRITE_MS), (ms) => [
      `${ms} ms pass`,
      (world) => (world.policies.nowMs += ms),
    ]),
  )

test.each([
  ['the statuses report more than nine tenths of the hits', 0],
  ['after losses, the statuses report at most the hits', 1],
])('%s', async (_name, losses) => {
  const run = fc.asyncProperty(
    fc.array(stepsWith(losses), { maxLength: STEPS_MAX }),
    async (all) => {
      const world = new AuditWorld()
      const before = new Map<string, { startTime: string; wouldDeny: number }>()
      const check = () => {
        for (const { key, startTime, wouldDeny } of world.shown()) {
          const last = before.get(key) ?? { startTime, wouldDeny: 0 }
          expect(wouldDeny).toBeLessThanOrEqual(world.counted.get(key) ?? 0)
          expect(wouldDeny).toBeGreaterThanOrEqual(last.wouldDeny)
          expect(startTime).toBe(last.startTime)
          before.set(key, { startTime, wouldDeny })
        }
      }
      for (const step of all) {
        await step.run(world)
        check()
      }
      for (const on of [0, 1]) world.send(on)
      for (let left = 2 * STEPS_MAX; left >= 0; left--) world.deliver(left % 2)
      world.policies.nowMs += AUDIT_WRITE_MS
      await world.write('ok')
      check()
      const shown = new Map(world.shown().map(({ key, wouldDeny }) => [key, wouldDeny]))
      for (const of of NAMES) {
        const key = world.keyOf(of)
        const isAudit = world.policies.list().some((policy) => {
          return policy.metadata.name === of && policy.spec.mode === 'Audit'
        })
        expect(shown.has(key)).toBe(isAudit)
        const [counted = 0, reported = 0] = [world.counted.get(key), shown.get(key)]
        if (isAudit && !world.isLossy) expect(reported * 1.1).toBeGreaterThanOrEqual(counted)
      }
      expect(await world.write('ok')).toEqual([])
    },
  )
  await fc.assert(run, { numRuns: 100 })
})

test('the first hits are written at once, increases of 10 % every 5 minutes', async () => {
  const world = new AuditWorld()
  await world.write('ok')
  expect(world.shown().map(({ wouldDeny }) => wouldDeny)).toEqual([0, 0])
  const report = (hits: number) => {
    world.deny(0, 'a', hits)
    world.send(0)
    return world.deliver(0)
  }
  const shown = () => world.shown()[0]
  world.policies.nowMs = 30_000
  expect(report(100)).toBe(true)
  expect(await world.write('ok')).toEqual(['n/a'])
  const lastObservedTime = '1970-01-01T00:00:30Z'
  expect(shown()).toMatchObject({
    wouldDeny: 100,
    startTime: '1970-01-01T00:00:00Z',
    lastObservedTime,
  })
  expect(await world.write('ok')).toEqual([])
  world.policies.nowMs = 90_000
  expect([report(9), await world.write('ok')]).toEqual([false, []])
  expect(world.nextChangeMs).toBeUndefined()
  world.policies.nowMs = 100_000
  expect([report(1), await world.write('ok')]).toEqual([false, []])
  expect(world.nextChangeMs).toBe(30_000 + AUDIT_WRITE_MS)
  world.policies.nowMs = 30_000 + AUDIT_WRITE_MS
  expect(await world.write('ok')).toEqual(['n/a'])
  expect(shown()).toMatchObject({ wouldDeny: 110, lastObservedTime: '1970-01-01T00:01:40Z' })
})

test('each generation starts at 0', async () => {
  const world = new AuditWorld()
  const report = async () => {
    world.deny(0, 'a', 3)
    world.send(0)
    world.deliver(0)
    await world.write('ok')
    return world.shown()[0]
  }
  expect(await report()).toMatchObject({ key: 'a 1', wouldDeny: 3 })
  world.policies.nowMs = 1000
  world.edit('a', 'Audit')
  await world.write('ok')
  const startTime = '1970-01-01T00:00:01Z'
  expect(world.shown()[0]).toEqual({ key: 'a 2', wouldDeny: 0, startTime })
  expect(await report()).toMatchObject({ key: 'a 2', wouldDeny: 3, startTime })
  world.edit('a', 'Enforce')
  await world.write('ok')
  expect(await report()).toMatchObject({ key: 'b 1', wouldDeny: 0 })
})
