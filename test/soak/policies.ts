// RateLimitPolicies under changes and faults: a real API server, two controllers, three limiters
// and Redis. At the end all limiters and all statuses have exactly what the compiler returns for
// the objects, and a policy that does not change denies its client throughout.
import { setTimeout as sleep } from 'node:timers/promises'
import { KubeError } from '../../src/kube/kube-error.ts'
import { createCompiler } from '../../src/policies/compile.ts'
import { differenceOf, policiesOf } from '../kit/policies/expected-state.ts'
import {
  CHANGE_GRANTS,
  createPolicyChanges,
  POLICIES_MAX,
  type PolicyChange,
  type PolicyChanges,
  STEADY,
  STEADY_KEY,
} from '../kit/policies/policy-changes.ts'
import { policyFaults } from '../kit/policies/policy-faults.ts'
import { PolicySoak } from '../kit/policies/policy-soak.ts'
import { createRandom, type Random } from '../kit/random.ts'
import { residentBytes } from '../kit/resident-bytes.ts'
import { waitFor } from '../kit/wait-for.ts'

const CHANGES = Math.min(100_000, Math.max(1, Number(process.env['CHANGES'] ?? 10_000)))
const CHANGES_PER_FAULT = 100
const FAULTS_PER_CHECK = 10
const WORKERS = 4
const APPLIES = 100
const CHANGE_MS_MAX = 120_000
const PAUSE_MS_MAX = 80
/** Includes the Lease of a killed leader, and the rate at which statuses are written. */
const SETTLE_MS_MAX = 300_000
const QUIET_MS = 5000
const REST_MS = 30_000
const MIB = 1024 * 1024

type Log = (line: string) => void

interface Run {
  readonly soak: PolicySoak
  readonly random: Random
  readonly changes: PolicyChanges
  readonly log: Log
  isStopping: boolean
  fault: string
  probes: number
  applied: number
  rejected: number
  failure: Error | undefined
}

/** Policies with 1 request, which has been used, by their key. */
const STEADY_KEYS = [STEADY_KEY, 'kept'] as const
const specOf = (key: string) => ({
  match: [{ key }],
  limits: [{ name: key, algorithm: 'FixedWindow', requests: 1, window: '366d' }],
  onStoreError: 'Deny',
})
/** An edit that is not accepted, so that the last accepted spec stays active. */
const unaccepted = { ...specOf('kept'), domain: 'other' }

/** Verifies on one limiter that a client that exceeds its limit is denied. */
async function probe(run: Run, at: number, key: string): Promise<void> {
  const { limiters } = run.soak
  while (!run.isStopping) {
    const limiter = limiters[at]
    const verdict = await limiter?.decide({ [key]: 'client' }).then(
      ({ overallCode }) => overallCode,
      (error: unknown) => String(error),
    )
    const isRunning = limiter !== undefined && limiters[at] === limiter
    if (verdict === 'OK' || (isRunning && verdict !== 'OVER_LIMIT')) {
      run.failure ??= new Error(`limiter ${at + 1}, ${key}: ${String(verdict)}, ${run.fault}`)
    }
    if (verdict === 'OVER_LIMIT') run.probes++
    await sleep(50)
  }
}

/** Creates the policies that are probed, and waits until their clients are denied. */
async function createSteady({ soak }: Run): Promise<void> {
  for (const key of STEADY_KEYS) {
    await soak.cluster.apply(STEADY, key, specOf(key))
    for (const limiter of soak.limiters) {
      await waitFor(`the limit of ${key}`, async () => {
        const { overallCode } = (await limiter?.decide({ [key]: 'client' })) ?? {}
        return overallCode === 'OVER_LIMIT'
      })
    }
  }
  await soak.cluster.apply(STEADY, 'kept', unaccepted)
}

/** Applies changes, with several calls in flight; while the API server is down, it waits. */
async function applyAll(run: Run, changes: readonly PolicyChange[]): Promise<void> {
  const left = [...changes].reverse()
  const work = async () => {
    for (let change = left.pop(); change !== undefined; change = left.pop()) {
      await applyOne(run, change)
      await sleep(run.random.int(PAUSE_MS_MAX))
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, work))
}

/** Applies a change; retries it while the API server is unavailable. */
async function applyOne(run: Run, change: PolicyChange): Promise<void> {
  const endMs = performance.now() + CHANGE_MS_MAX
  for (;;) {
    try {
      await run.soak.apply(change)
      run.applied++
      return
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (error.status === 422) {
        run.rejected++
        return
      }
      if (performance.now() > endMs) throw error
      await sleep(200)
    }
  }
}

/** Waits until all limiters and statuses have the final state. Returns the time that it took. */
async function settle({ soak }: Run): Promise<number> {
  const startedMs = performance.now()
  let difference: string | undefined = 'not compared'
  for (;;) {
    difference = await soak
      .observe()
      .then((observed) => differenceOf(observed, CHANGE_GRANTS))
      .catch((error: unknown) => `not observed: ${String(error)}`)
    const tookMs = performance.now() - startedMs
    if (difference === undefined) return tookMs
    if (tookMs > SETTLE_MS_MAX) throw new Error(`no final state: ${difference.slice(0, 5000)}`)
    await sleep(1000)
  }
}

/** Changes and faults, until all changes are applied; compares the state at times. */
async function causeFaults(run: Run): Promise<void> {
  const { soak, random, changes, log } = run
  const counts = new Map<string, number>()
  let left: string[] = []
  for (let round = 1; (round - 1) * CHANGES_PER_FAULT < CHANGES; round++) {
    if (left.length === 0) left = Object.keys(policyFaults)
    const [name = ''] = left.splice(random.int(left.length), 1)
    run.fault = name
    const count = Math.min(CHANGES_PER_FAULT, CHANGES - (round - 1) * CHANGES_PER_FAULT)
    const next = Array.from({ length: count }, changes.next)
    if (random.chance(0.5)) await soak.waitForLeader() // else the previous fault has still effect
    const starting = sleep(random.int(1000)).then(() => policyFaults[name]?.(soak, random))
    await Promise.all([starting, applyAll(run, next)])
    counts.set(name, (counts.get(name) ?? 0) + 1)
    const failure = run.failure ?? soak.failure
    if (failure !== undefined) throw failure
    run.fault = `after ${name}`
    if (round % FAULTS_PER_CHECK !== 0) continue
    const settledMs = await settle(run)
    log(`${run.applied} changes: final state after ${(settledMs / 1000).toFixed(1)} s`)
  }
  log([...counts].map(([name, count]) => `${count} × ${name}`).join(', '))
}

/** Policies that are applied one after the other: the time until all limiters deny. */
async function measureApplies({ soak, log }: Run): Promise<void> {
  const timesMs: number[] = []
  for (let at = 0; at < APPLIES; at++) {
    const value = `value-${at}`
    const limits = [{ name: value, algorithm: 'FixedWindow', requests: 1, window: '1d' }]
    const startedMs = performance.now()
    await soak.cluster.apply(STEADY, value, { match: [{ key: 'applied', value }], limits })
    const isDenied = soak.limiters.map((limiter) =>
      waitFor(`${value} to be denied`, async () => {
        const { overallCode } = (await limiter?.decide({ applied: value })) ?? {}
        return overallCode === 'OVER_LIMIT'
      }),
    )
    await Promise.all(isDenied)
    timesMs.push(performance.now() - startedMs)
  }
  timesMs.sort((a, b) => a - b)
  const shown = [0.5, 0.99, 1].map((share) => timesMs[Math.ceil(share * APPLIES) - 1]?.toFixed(0))
  log(`${APPLIES} applies until each limiter denies: p50, p99, maximum ${shown.join(', ')} ms`)
}

/** Creates all policies, and reports the leader's memory and the time of compilations. */
async function fill(run: Run): Promise<void> {
  const { soak, changes, log } = run
  await applyAll(run, changes.fill())
  const settledMs = await settle(run)
  const megabytes = ((await residentBytes(soak.leader().pid)) / MIB).toFixed(0)
  const seconds = (settledMs / 1000).toFixed(1)
  log(`${POLICIES_MAX} policies: final state after ${seconds} s, leader ${megabytes} MiB`)
  const policies = policiesOf(await soak.observe())
  const compileAll = createCompiler(CHANGE_GRANTS)
  const times = [policies, policies.slice(1), policies, policies.slice(1)].map((each) => {
    const before = process.cpuUsage()
    compileAll(each)
    return (process.cpuUsage(before).user / 1000).toFixed(0)
  })
  log(`CPU of a compilation: first ${times[0] ?? ''} ms, then ${times.slice(1).join(', ')} ms`)
}

/** Logs how many policies have which reasons. */
async function logReasons({ soak, log }: Run): Promise<void> {
  const { policies } = await soak.observe()
  const reasons = Map.groupBy(policies, ({ status }) =>
    (status?.conditions ?? []).map(({ reason }) => reason).join(' '),
  )
  log([...reasons].map(([reason, all]) => `${all.length} × ${reason}`).join(', '))
}

/** Verifies that the controllers write nothing while nothing changes. */
async function rest({ soak, log }: Run): Promise<void> {
  await waitFor(
    'the last write',
    async () => {
      const writes = await soak.writes()
      await sleep(QUIET_MS)
      return (await soak.writes()) === writes
    },
    SETTLE_MS_MAX,
  )
  const writes = await soak.writes()
  await sleep(REST_MS)
  const more = (await soak.writes()) - writes
  if (more > 0) throw new Error(`the controllers wrote ${more} times within ${REST_MS} ms of rest`)
  log(`no write within ${REST_MS / 1000} s of rest, ${writes} by the running controllers before`)
}

async function runAll(run: Run): Promise<void> {
  const { soak, log } = run
  await createSteady(run)
  const probing = soak.limiters.flatMap((_, at) => STEADY_KEYS.map((key) => probe(run, at, key)))
  try {
    await fill(run)
    await measureApplies(run)
    await causeFaults(run)
    await settle(run)
    await logReasons(run)
    await rest(run)
  } finally {
    run.isStopping = true
    await Promise.all(probing)
  }
  if (run.failure !== undefined) throw run.failure
  const megabytes = (soak.controllerBytesMax / MIB).toFixed(0)
  log(`${run.applied} changes applied, ${run.rejected} rejected by the API server`)
  log(`${run.probes} probes denied, ${soak.lostLeases} leaders exited without their Lease`)
  log(`maximum resident memory of a controller: ${megabytes} MiB`)
}

/** Runs the test with CHANGES changes. */
export async function run({ seed, log }: { seed: number; log: Log }): Promise<void> {
  const random = createRandom(seed)
  const changes = createPolicyChanges(random)
  const soak = await PolicySoak.start()
  const counts = { probes: 0, applied: 0, rejected: 0 }
  try {
    const state = { isStopping: false, fault: 'none', failure: undefined }
    await runAll({ soak, random, changes, log, ...state, ...counts })
  } finally {
    await soak.stop()
  }
}
