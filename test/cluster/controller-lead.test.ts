// Controllers that end, hang and sleep, and an API server that is away: another leads in time, and
// nothing is done twice or lost.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { inTime, waitFor } from '../component/wait-for.ts'
import { tookBesidePauses } from '../component/watch-pauses.ts'
import { kubectl, onNode } from './cluster.ts'
import { CODE_SECRET, type PoolWords, poolWords } from './code-pools.ts'
import { type Creator, startCreator } from './creator.ts'
import { auditedCalls, openKubeApi, writesIn } from './kube.ts'
import { containerOf, type Leader, processOf, readLeader, signalTo } from './leader.ts'
import { ensureRelease, INSTALL_MS_MAX, RELEASE, untilWhole } from './release.ts'

const TEST_MS_MAX = 5 * 60_000
const TAKEN_MS_MAX = 60_000
const AWAY_MS = 30_000
const POOL = 'led'
const LOW_WATER = 2000
const TARGET = 5000

let words: PoolWords
let close: () => void
let creator: Creator

beforeAll(async () => {
  await ensureRelease()
  const opened = await openKubeApi()
  close = opened.close
  words = poolWords(opened.api)
  const marks = { lowWater: LOW_WATER, target: TARGET }
  await words.make(POOL, { ...marks, storeName: POOL, codeSecret: CODE_SECRET })
  await words.untilSays(POOL, 'Ready', 'True LevelSufficient')
  creator = await startCreator(POOL)
}, INSTALL_MS_MAX)

afterEach(async () => {
  await untilWhole('deployment/controller')
}, TEST_MS_MAX)

afterAll(async () => {
  await creator.stop()
  await kubectl('delete', 'codepool', POOL, '--namespace', RELEASE)
  close()
}, TEST_MS_MAX)

async function leaderNow(): Promise<Leader> {
  let leader: Leader | undefined
  await waitFor(
    'somebody to lead',
    async () => {
      leader = await readLeader()
      return leader !== undefined
    },
    TAKEN_MS_MAX,
  )
  if (leader === undefined) throw new Error('nobody leads')
  return leader
}

/** Time until another leads, from now on, beside a pause of the machine, ms. */
function untilAnother({ identity }: Leader): Promise<number> {
  const isAnother = async () => {
    const now = await readLeader()
    return now !== undefined && now.identity !== identity
  }
  return tookBesidePauses(() => waitFor('another to lead', isAnother, TAKEN_MS_MAX))
}

function say(what: string, ms: number): void {
  process.stdout.write(`${what}: another led after ${(ms / 1000).toFixed(1)} s\n`)
}

test(
  'ended by SIGTERM, it is followed within 3 s',
  async () => {
    const leader = await leaderNow()
    const pid = await processOf(leader.pod)
    await signalTo(pid, 'TERM')
    const ms = await untilAnother(leader)
    say('SIGTERM', ms)
    expect(ms).toBeLessThan(3000)
  },
  TEST_MS_MAX,
)

test(
  'killed, it is followed within 20 s, and the next one keeps the pool',
  async () => {
    const leader = await leaderNow()
    const pid = await processOf(leader.pod)
    await signalTo(pid, 'KILL')
    const ms = await untilAnother(leader)
    say('SIGKILL', ms)
    expect(ms).toBeLessThan(20_000)
    const { metadata } = await words.get(POOL)
    await words.change(POOL, { headroomHours: 1 })
    await waitFor(
      'the change to be seen',
      async () =>
        ((await words.get(POOL)).status?.observedGeneration ?? 0) > (metadata.generation ?? 0),
    )
  },
  TEST_MS_MAX,
)

test(
  'asleep past its time and woken, it writes nothing and ends',
  async () => {
    const leader = await leaderNow()
    const pid = await processOf(leader.pod)
    const { restartCount } = await containerOf(leader.pod)
    await signalTo(pid, 'STOP')
    await words.change(POOL, { paused: true })
    const ms = await untilAnother(leader)
    say('SIGSTOP', ms)
    expect(ms).toBeLessThan(20_000)
    await words.untilSays(POOL, 'Refilling', 'False Paused')
    const wokenMs = Date.now()
    await signalTo(pid, 'CONT')
    await waitFor(
      'it to end',
      async () => (await containerOf(leader.pod)).restartCount > restartCount,
      TAKEN_MS_MAX,
    )
    const { lastState } = await containerOf(leader.pod)
    expect(lastState.terminated?.exitCode).toBe(1)
    const later = await auditedCalls(wokenMs)
    expect(later.length).toBeGreaterThan(0)
    expect(writesIn(later).filter(({ pod }) => pod === leader.pod)).toEqual([])
    await words.change(POOL, { paused: false })
    await words.untilSays(POOL, 'Refilling', 'False NotNeeded')
  },
  TEST_MS_MAX,
)

test(
  'an API server that hangs for 30 s costs nothing: a pool that ran low meanwhile is filled once',
  async () => {
    const { refills = 0 } = (await words.get(POOL)).status ?? {}
    const begunMs = Date.now()
    const server = (await onNode('cat', '/run/pids/kube-apiserver')).trim()
    let codes: readonly string[] = []
    await signalTo(server, 'STOP')
    try {
      const stoppedMs = performance.now()
      const state = { isLow: false }
      const made = creator.createUntil(() => state.isLow)
      const isLow = async () => (await creator.levelOf(POOL)) < LOW_WATER
      await waitFor('low water', isLow, AWAY_MS).finally(() => {
        state.isLow = true
      })
      codes = await inTime('the last links', made)
      const isOver = () => performance.now() - stoppedMs > AWAY_MS
      await waitFor('its time to be over', isOver, AWAY_MS + 1000)
    } finally {
      await signalTo(server, 'CONT')
    }
    await waitFor(
      'the level to be back',
      async () => (await creator.levelOf(POOL)) >= TARGET - 1000,
      2 * TAKEN_MS_MAX,
    )
    await words.untilSays(POOL, 'Refilling', 'False NotNeeded')
    await words.untilSays(POOL, 'Ready', 'True LevelSufficient')
    expect((await words.get(POOL)).status?.refills).toBe(refills + 1)
    expect(await creator.levelOf(POOL)).toBeLessThanOrEqual(TARGET)
    const more = await creator.createUntil((count) => count >= 2000)
    expect(new Set([...codes, ...more]).size).toBe(codes.length + more.length)
    const jobs = (await auditedCalls(begunMs)).filter(
      ({ verb, resource, name }) =>
        verb === 'create' && resource === 'batch/jobs' && name.startsWith(POOL),
    )
    expect(jobs.filter(({ code }) => code === 201)).toHaveLength(1)
    process.stdout.write(`${codes.length + more.length} links, none twice\n`)
  },
  TEST_MS_MAX,
)
