// Which statuses are written: a bounded number at a time, for the namespaces in turn, and none when
// a limiter reconnects. No status contains the cause that a limiter reports for a rejection.
import { expect, test } from '@jest/globals'
import { compile } from '../../policies/compile.ts'
import { POLICY_GRANTS, PolicyWorld } from '../../../test/kit/policies/policy-world.ts'
import { LIMITER_ABSENCE_MS, LIMITER_RECONNECT_MS } from './limiter-count.ts'
import type { RateLimitPolicySpec } from './rate-limit-policy.ts'
import { type ConnectedLimiter, createPolicyReports } from './report-policies.ts'
import { createRuleVersions } from './rule-versions.ts'
import { policyOf } from './watch-policies.ts'

const { signal } = new AbortController()
const limits = [{ name: 'l', algorithm: 'FixedWindow', requests: 1, window: '1s' }] as const
const specOf = (key: string): RateLimitPolicySpec => ({
  ...{ domain: 'd', match: [{ key }], limits },
  ...({ mode: 'Enforce', onStoreError: 'Local' } as const),
})

/** Two accepted policies, and two limiters that apply them. */
function startReports(world = new PolicyWorld(['a', 'b'].map((name) => [name, specOf(name)]))) {
  const versions = createRuleVersions()
  const connected: ConnectedLimiter[] = []
  const reports = createPolicyReports({
    ...world.reportDeps,
    versions,
    limiters: () => connected,
  })
  const compileAll = () => {
    const policies = world.list().map((policy) => policyOf(policy, [], undefined))
    const compiled = compile(policies, POLICY_GRANTS)
    versions.record(policies, compiled)
    return compiled.version
  }
  const version = compileAll()
  const limiter = (node: string, active = version): ConnectedLimiter => ({
    ...{ node, address: '10.0.0.1', active, rejected: undefined },
  })
  const set = (...all: readonly ConnectedLimiter[]) => connected.splice(0, 9, ...all)
  set(limiter('l1'), limiter('l2'))
  const writeAll = async () => {
    const keys = reports.outdated()
    for (const key of keys) await reports.write(key, signal)
    return keys.length
  }
  return { world, reports, limiter, set, writeAll, compileAll, version }
}

const shownOf = ({ world }: { world: PolicyWorld }) =>
  world.list().map(({ status }) => {
    const [, programmed] = status?.conditions ?? []
    return `${programmed?.reason ?? ''} ${status?.replicas?.active ?? 0}`
  })

test('a limiter that reconnects within the grace time causes no writes', async () => {
  const given = startReports()
  const { world, limiter, set, writeAll } = given
  expect(await writeAll()).toBe(2)
  expect(shownOf(given)).toEqual(['Programmed 2', 'Programmed 2'])
  const states = [[], [limiter('l2', '')], [limiter('l2')]]
  for (let at = 0; at < 300; at++) {
    world.nowMs += 1000
    set(limiter('l1'), ...(states[at % 3] ?? []))
    expect(await writeAll()).toBe(0)
  }
  set(limiter('l1'))
  world.nowMs += 1000
  expect(await writeAll()).toBe(0)
  world.nowMs += LIMITER_ABSENCE_MS + 1000
  expect(await writeAll()).toBe(2)
  expect(shownOf(given)).toEqual(['Pending 1', 'Pending 1'])
})

test('a policy that is deleted or up to date is not written', async () => {
  const { world, reports, writeAll } = startReports()
  await writeAll()
  for (const key of ['n/a', 'n/deleted']) await reports.write(key, signal)
  expect(world.list().map(({ metadata }) => metadata.resourceVersion)).toEqual(['3', '4'])
})

test('the log has one line for each generation that all limiters apply', async () => {
  const { world, limiter, set, writeAll, compileAll, version } = startReports()
  await writeAll()
  const lineOf = (policy: string, generation: number, of: string) => ({
    ...{ namespace: 'n', policy, generation, version: of, limiters: 2 },
  })
  const lines = [lineOf('a', 1, version), lineOf('b', 1, version)]
  expect(world.programmed).toEqual(lines)
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  const next = compileAll()
  set(limiter('l1', next), limiter('l2'))
  await writeAll()
  expect(world.programmed).toEqual(lines)
  set(limiter('l1', next), limiter('l2', next))
  await writeAll()
  expect(world.programmed).toEqual([...lines, lineOf('a', 2, next)])
  set(limiter('l1', next))
  await writeAll()
  world.nowMs += LIMITER_ABSENCE_MS + 1000
  expect(await writeAll()).toBe(2)
  expect(shownOf({ world })).toEqual(['Pending 1', 'Pending 1'])
  set(limiter('l1', next), limiter('l2', next))
  expect(await writeAll()).toBe(2)
  await startReports(world).writeAll()
  expect(world.programmed).toHaveLength(3)
})

test('a new leader repeats no line of a policy that its process saw Programmed', async () => {
  const { world, limiter, set, writeAll } = startReports()
  await writeAll()
  set(limiter('l1'))
  await writeAll()
  world.nowMs += LIMITER_ABSENCE_MS + 1000
  await writeAll()
  expect(shownOf({ world })).toEqual(['Pending 1', 'Pending 1'])
  const [reported, emitted] = [world.programmed.length, world.events.length]
  // The status does not record whether the generation has been Programmed.
  expect(await startReports(world).writeAll()).toBe(2)
  expect(shownOf({ world })).toEqual(['Programmed 2', 'Programmed 2'])
  expect(world.programmed.slice(reported)).toHaveLength(2)
  expect(world.events.slice(emitted)).toEqual(['a Programmed', 'b Programmed'])
  const third = startReports(world)
  third.set(limiter('l1'))
  await third.writeAll()
  world.nowMs += LIMITER_RECONNECT_MS
  expect(await third.writeAll()).toBe(2)
  third.set(limiter('l1'), limiter('l2'))
  expect(await third.writeAll()).toBe(2)
  expect(world.programmed).toHaveLength(reported + 2)
})

test('the log line has the version for which the status was decided', async () => {
  const { world, reports, limiter, set, version } = startReports()
  const writing = reports.write('n/a', signal)
  set(limiter('l1', 'next'), limiter('l2', 'next'))
  await writing
  expect(world.programmed).toEqual([expect.objectContaining({ policy: 'a', version })])
})

test('a new leader reports a changed or new policy only once all limiters apply it', async () => {
  const before = startReports()
  const { world } = before
  await before.writeAll()
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  world.add('n/c', specOf('c'), 5)
  const { limiter, set, writeAll, reports } = startReports(world)
  set(limiter('l1'))
  expect(await writeAll()).toBe(2)
  expect(shownOf(before)).toEqual(['Pending 1', 'Programmed 2', 'Pending 1'])
  expect(world.list()[0]?.status?.replicas).toEqual({ active: 1, total: 2 })
  set(limiter('l1'), limiter('l2', ''))
  await writeAll()
  expect(shownOf(before)).toEqual(['Pending 1', 'Programmed 2', 'Pending 1'])
  set(limiter('l1'))
  world.nowMs += LIMITER_RECONNECT_MS - 1
  expect(await writeAll()).toBe(0)
  expect(reports.nextChangeMs()).toBe(world.nowMs + 1)
  set(limiter('l1'), limiter('l2'))
  await writeAll()
  expect(shownOf(before)).toEqual(['Programmed 2', 'Programmed 2', 'Programmed 2'])
})

test('a new leader waits at most until the limiters could have reconnected', async () => {
  const before = startReports()
  const { world } = before
  await before.writeAll()
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  const { limiter, set, writeAll } = startReports(world)
  set(limiter('l1'))
  await writeAll()
  expect(shownOf(before)).toEqual(['Pending 1', 'Programmed 2'])
  world.nowMs += LIMITER_RECONNECT_MS
  expect(await writeAll()).toBe(2)
  expect(shownOf(before)).toEqual(['Programmed 1', 'Programmed 1'])
})

test('a new leader does not wait for a limiter that stops', async () => {
  const before = startReports()
  const { world } = before
  before.set(...['l1', 'l2', 'l3'].map((node) => before.limiter(node)))
  await before.writeAll()
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  const { reports, limiter, set, writeAll, version } = startReports(world)
  reports.leave(version)
  set(limiter('l2'))
  await writeAll()
  expect(world.list()[0]?.status?.replicas).toEqual({ active: 1, total: 2 })
  set(limiter('l2'), limiter('l3'))
  await writeAll()
  expect(shownOf(before)).toEqual(['Programmed 2', 'Programmed 2'])
})

test('a limiter that stops does not count, even if it has just accepted a version', async () => {
  const given = startReports()
  const { world, reports, limiter, set, writeAll, compileAll, version } = given
  set(limiter('l1'), limiter('l2'), limiter('l3'))
  await writeAll()
  expect(shownOf(given)).toEqual(['Programmed 3', 'Programmed 3'])
  reports.leave(version)
  set(limiter('l1'), limiter('l2'))
  await writeAll()
  expect(shownOf(given)).toEqual(['Programmed 2', 'Programmed 2'])
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  const next = compileAll()
  set(limiter('l1', next), limiter('l2', next))
  reports.leave(next)
  set(limiter('l1', next))
  expect(reports.counts()).toEqual({ current: 1, outdated: 0, missing: 0 })
})

test('a limiter that rejects rules and reconnects is reported once', async () => {
  const given = startReports()
  const { world, limiter, set, writeAll, compileAll } = given
  await writeAll()
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  const version = compileAll()
  const message = `${'x'.repeat(499)}\u{1f600} secret of another tenant`
  const rejecting = { ...limiter('l2'), rejected: { version, message } }
  set(limiter('l1', version), rejecting)
  expect(await writeAll()).toBe(1)
  expect(shownOf(given)).toEqual(['Rejected 1', 'Programmed 2'])
  for (let at = 0; at < 60; at++) {
    world.nowMs += 1000
    set(limiter('l1', version), ...(at % 2 === 0 ? [] : [rejecting]))
    expect(await writeAll()).toBe(0)
  }
  expect(JSON.stringify(world.list())).not.toMatch(/xx|secret/)
  expect(world.events).toEqual(
    ['a Accepted', 'a Programmed', 'b Accepted', 'b Programmed'].concat('a Accepted'),
  )
  const rejections = world.logged.filter((fields) => 'limiter' in fields)
  expect(rejections).toEqual([
    { limiter: 'l2', address: '10.0.0.1', version, detail: `${'x'.repeat(499)}\ufffd` },
  ])
  set(limiter('l1', version), limiter('l2', version))
  expect(await writeAll()).toBe(1)
  expect(shownOf(given)).toEqual(['Programmed 2', 'Programmed 2'])
})

test('a corrected policy is pending until a limiter rejects it too', async () => {
  const given = startReports()
  const { world, limiter, set, writeAll, compileAll } = given
  await writeAll()
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  const bad = compileAll()
  const rejecting = (rejected: string) => ({
    ...limiter('l2'),
    rejected: { version: rejected, message: 'm' },
  })
  set(limiter('l1', bad), rejecting(bad))
  await writeAll()
  expect(shownOf(given)).toEqual(['Rejected 1', 'Programmed 2'])
  world.edit('a', specOf('corrected'))
  const next = compileAll()
  await writeAll()
  expect(shownOf(given)).toEqual(['Pending 0', 'Programmed 2'])
  set(limiter('l1', next), rejecting(next))
  await writeAll()
  expect(shownOf(given)).toEqual(['Rejected 1', 'Programmed 2'])
})

test('a rejection is over when the limiter accepts the version', async () => {
  const given = startReports()
  const { world, limiter, set, writeAll, compileAll } = given
  await writeAll()
  world.edit('a', { ...specOf('a'), mode: 'Audit' })
  const version = compileAll()
  set(limiter('l1', version), { ...limiter('l2'), rejected: { version, message: 'm' } })
  await writeAll()
  set(limiter('l1', version), limiter('l2', version))
  await writeAll()
  expect(shownOf(given)).toEqual(['Programmed 2', 'Programmed 2'])
  set(limiter('l1', version), limiter('l2', ''))
  await writeAll()
  world.nowMs += LIMITER_ABSENCE_MS + 1000
  await writeAll()
  expect(shownOf(given)).toEqual(['Pending 1', 'Pending 1'])
})

test('a namespace with many outdated policies delays others by one turn', async () => {
  const names = Array.from({ length: 1500 }, (_, at) => `p${at}`)
  const world = new PolicyWorld(names.map((name) => [name, { ...specOf('a'), limits: [] }]))
  world.add('m/other', specOf('a'), 5000)
  const { reports, writeAll, set } = startReports(world)
  const first = reports.outdated()
  expect([first.length, first.indexOf('m/other')]).toEqual([200, 1])
  expect(world.decisions).toBeLessThan(210)
  expect(reports.nextChangeMs()).toBe(world.nowMs + 5000)
  let written = 0
  for (let runs = 0; runs < 8; runs++) written += await writeAll()
  expect([written, reports.outdated().length]).toEqual([1501, 0])
  world.decisions = 0
  reports.outdated()
  expect(world.decisions).toBe(0)
  // A policy that is not active has no number of limiters, which would change its status.
  set()
  expect(reports.outdated()).toEqual([])
  world.nowMs += LIMITER_RECONNECT_MS
  expect(reports.outdated()).toEqual(['m/other'])
})
