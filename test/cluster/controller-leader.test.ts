// Controllers that stop, crash and hang, and an API server that hangs: another controller leads
// within the deadline, and no refill is lost or done twice.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { watchPauses } from '../kit/watch-pauses.ts'
import { kubectl, runOnNode } from './cluster.ts'
import { CODE_SECRET, type CodePoolClient, createCodePoolClient } from './code-pools.ts'
import { type CreatePod, startCreatePod } from './create-pod.ts'
import { readAuditedCalls, openKubeApi, writeCalls } from './kube-api.ts'
import { getContainer, type Leader, findPid, readLeader, sendSignal } from './leader.ts'
import { ensureRelease, INSTALL_MS_MAX, RELEASE, waitForRollout } from './release.ts'

const TEST_MS_MAX = 5 * 60_000
const TAKEOVER_MS_MAX = 60_000
const OUTAGE_MS = 30_000
const POOL = 'led'
const LOW_WATER = 2000
const TARGET = 5000

let pools: CodePoolClient
let close: () => void
let createPod: CreatePod

beforeAll(async () => {
  await ensureRelease()
  const opened = await openKubeApi()
  close = opened.close
  pools = createCodePoolClient(opened.api)
  const levels = { lowWater: LOW_WATER, target: TARGET }
  await pools.create(POOL, { ...levels, storeName: POOL, codeSecret: CODE_SECRET })
  await pools.waitForCondition(POOL, 'Ready', 'True LevelSufficient')
  createPod = await startCreatePod(POOL)
}, INSTALL_MS_MAX)

afterEach(async () => {
  await waitForRollout('deployment/controller')
}, TEST_MS_MAX)

afterAll(async () => {
  await createPod.stop()
  await kubectl('delete', 'codepool', POOL, '--namespace', RELEASE)
  close()
}, TEST_MS_MAX)

async function waitForLeader(): Promise<Leader> {
  let leader: Leader | undefined
  await waitFor(
    'a leader',
    async () => {
      leader = await readLeader()
      return leader !== undefined
    },
    TAKEOVER_MS_MAX,
  )
  if (leader === undefined) throw new Error('no controller leads')
  return leader
}

/**
 * Waits for another leader; resolves to the time until it acquired the Lease, in ms, without pauses
 * of the machine and without the time that kubectl needs to read the Lease.
 */
async function waitForTakeover({ identity }: Leader): Promise<number> {
  const startedMs = Date.now()
  const pauses = watchPauses()
  let acquiredMs = Number.NaN
  const isAnother = async () => {
    const current = await readLeader()
    if (current === undefined || current.identity === identity) return false
    acquiredMs = current.acquiredMs
    return true
  }
  try {
    await waitFor('another leader', isAnother, TAKEOVER_MS_MAX)
    return acquiredMs - startedMs - pauses.longestMs()
  } finally {
    pauses.stop()
  }
}

function logTakeover(cause: string, ms: number): void {
  process.stdout.write(`${cause}: another controller led after ${(ms / 1000).toFixed(1)} s\n`)
}

test(
  'after SIGTERM to the leader, another controller leads within 3 s',
  async () => {
    const leader = await waitForLeader()
    const pid = await findPid(leader.pod)
    await sendSignal(pid, 'TERM')
    const ms = await waitForTakeover(leader)
    logTakeover('SIGTERM', ms)
    expect(ms).toBeLessThan(3000)
  },
  TEST_MS_MAX,
)

test(
  'after SIGKILL, another controller leads within 20 s and reconciles the pool',
  async () => {
    const leader = await waitForLeader()
    const pid = await findPid(leader.pod)
    await sendSignal(pid, 'KILL')
    const ms = await waitForTakeover(leader)
    logTakeover('SIGKILL', ms)
    expect(ms).toBeLessThan(20_000)
    const { metadata } = await pools.get(POOL)
    await pools.patch(POOL, { headroomHours: 1 })
    await waitFor(
      'the change to be observed',
      async () =>
        ((await pools.get(POOL)).status?.observedGeneration ?? 0) > (metadata.generation ?? 0),
    )
    // After five minutes, a forecast could start a refill in the tests below.
    await pools.patch(POOL, { headroomHours: null })
  },
  TEST_MS_MAX,
)

test(
  'a leader that stalls longer than its Lease writes nothing when it resumes, and exits',
  async () => {
    const leader = await waitForLeader()
    const pid = await findPid(leader.pod)
    const { restartCount } = await getContainer(leader.pod)
    await sendSignal(pid, 'STOP')
    await pools.patch(POOL, { paused: true })
    const ms = await waitForTakeover(leader)
    logTakeover('SIGSTOP', ms)
    expect(ms).toBeLessThan(20_000)
    await pools.waitForCondition(POOL, 'Refilling', 'False Paused')
    const resumedMs = Date.now()
    await sendSignal(pid, 'CONT')
    await waitFor(
      'the stalled leader to exit',
      async () => (await getContainer(leader.pod)).restartCount > restartCount,
      TAKEOVER_MS_MAX,
    )
    const { lastState } = await getContainer(leader.pod)
    expect(lastState.terminated?.exitCode).toBe(1)
    const later = await readAuditedCalls(resumedMs)
    expect(later.length).toBeGreaterThan(0)
    expect(writeCalls(later).filter(({ pod }) => pod === leader.pod)).toEqual([])
    await pools.patch(POOL, { paused: false })
    await pools.waitForCondition(POOL, 'Refilling', 'False NotNeeded')
  },
  TEST_MS_MAX,
)

test(
  'a pool that runs low while the API server hangs for 30 s is refilled exactly once',
  async () => {
    const { refills = 0 } = (await pools.get(POOL)).status ?? {}
    const startedMs = Date.now()
    const server = (await runOnNode('cat', '/run/pids/kube-apiserver')).trim()
    // A level of exactly low water starts no refill, and one more block of codes is below it.
    const codes = [...(await createPod.createUntilLevel(LOW_WATER, 2 * TAKEOVER_MS_MAX))]
    expect(await createPod.levelOf(POOL)).toBe(LOW_WATER)
    await sendSignal(server, 'STOP')
    try {
      const stoppedMs = performance.now()
      codes.push(...(await createPod.createUntilLevel(LOW_WATER - 1, OUTAGE_MS)))
      const isOver = () => performance.now() - stoppedMs > OUTAGE_MS
      await waitFor('the outage to be over', isOver, OUTAGE_MS + 1000)
    } finally {
      await sendSignal(server, 'CONT')
    }
    await waitFor(
      'the level to reach the target',
      async () => (await createPod.levelOf(POOL)) >= TARGET - 1000,
      2 * TAKEOVER_MS_MAX,
    )
    await pools.waitForCondition(POOL, 'Refilling', 'False NotNeeded')
    await pools.waitForCondition(POOL, 'Ready', 'True LevelSufficient')
    expect((await pools.get(POOL)).status?.refills).toBe(refills + 1)
    expect(await createPod.levelOf(POOL)).toBeLessThanOrEqual(TARGET)
    const more = await createPod.createUntil((count) => count >= 2000)
    expect(new Set([...codes, ...more]).size).toBe(codes.length + more.length)
    const jobs = (await readAuditedCalls(startedMs)).filter(
      ({ verb, resource, name }) =>
        verb === 'create' && resource === 'batch/jobs' && name.startsWith(POOL),
    )
    expect(jobs.filter(({ code }) => code === 201)).toHaveLength(1)
    process.stdout.write(`${codes.length + more.length} links, no duplicates\n`)
  },
  TEST_MS_MAX,
)
