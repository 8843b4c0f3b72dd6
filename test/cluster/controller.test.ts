// The controller on a cluster whose Jobs are real: links are created until a pool runs low, Jobs
// and pods are deleted, a Secret is missing; what it says of all that; and that its rights are just
// enough.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../component/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import { CODE_SECRET, makeCodeSecret, type PoolWords, poolWords } from './code-pools.ts'
import { type Creator, startCreator } from './creator.ts'
import { type Audited, auditedCalls, openKubeApi } from './kube.ts'
import { ensureRelease, FULL_NAME, INSTALL_MS_MAX, RELEASE } from './release.ts'

const TEST_MS_MAX = 5 * 60_000
const WAIT_MS_MAX = 120_000
/** An event is counted once more a minute after it was written at the earliest. */
const SERIES_MS = 61_000
const LOW_WATER = 2000
const TARGET = 5000
/** Filled by the controller, emptied by a creator. */
const SMALL = 'small'
/** In trouble all the time. */
const MENDED = 'mended'
const MISSING = 'comes-later'

let words: PoolWords
let creator: Creator
let close: () => void
let begunMs: number
/** When `mended` was told to be well for the first time. */
let recoveredMs: number

const specOf = (storeName: string) => ({
  ...{ lowWater: LOW_WATER, target: TARGET, storeName, codeSecret: CODE_SECRET },
})

beforeAll(async () => {
  await ensureRelease()
  begunMs = Date.now()
  const opened = await openKubeApi()
  close = opened.close
  words = poolWords(opened.api)
  await words.make(MENDED, { ...specOf(MENDED), codeSecret: { name: MISSING } })
  await words.make(SMALL, specOf(SMALL))
}, INSTALL_MS_MAX)

afterAll(async () => {
  await creator.stop()
  await kubectl('delete', 'codepools', SMALL, MENDED, '--namespace', RELEASE)
  await kubectl('delete', 'secret', MISSING, '--namespace', RELEASE)
  close()
}, TEST_MS_MAX)

const describePool = (name: string) => kubectl('describe', 'codepool', name, '-n', RELEASE)
/** Jobs that were made for a pool, since the cluster is there. */
const madeFor = async (pool: string) =>
  (await auditedCalls(begunMs)).filter(
    ({ verb, resource, name, code }) =>
      verb === 'create' && resource === 'batch/jobs' && name.startsWith(pool) && code === 201,
  )

test(
  'a Job that somebody deletes is made anew, with the Secret that it waited for',
  async () => {
    await waitFor('a Job', async () => (await words.jobs(MENDED)).length === 1, WAIT_MS_MAX)
    const [job = ''] = await words.jobs(MENDED)
    await kubectl('delete', 'job', job, '--namespace', RELEASE, '--wait=false')
    await makeCodeSecret(MISSING)
    await waitFor(
      'JobGone',
      async () => (await describePool(MENDED)).includes('JobGone'),
      WAIT_MS_MAX,
    )
    await words.untilSays(MENDED, 'Ready', 'True LevelSufficient')
    await words.untilSays(MENDED, 'Degraded', 'False AsExpected')
    recoveredMs = Date.now()
    expect((await words.get(MENDED)).status).toMatchObject({ refills: 2, failures: 0 })
    // For the last but one test, which has no need to wait for it then.
    await words.change(MENDED, {
      ...{ lowWater: 2 * TARGET, target: 3 * TARGET },
      codeSecret: { name: 'there-is-none' },
    })
  },
  TEST_MS_MAX,
)

test(
  'links are created until the pool runs low: one Job, and the level is back',
  async () => {
    await words.untilSays(SMALL, 'Ready', 'True LevelSufficient')
    creator = await startCreator(SMALL)
    const state = { isLow: false }
    const lowered = waitFor(
      'the level to fall below low water',
      async () => (await creator.levelOf(SMALL)) < LOW_WATER,
      WAIT_MS_MAX,
    ).finally(() => {
      state.isLow = true
    })
    const codes = await creator.createUntil(() => state.isLow)
    await lowered
    expect(new Set(codes).size).toBe(codes.length)
    await waitFor(
      'the level to be back',
      async () => (await creator.levelOf(SMALL)) >= TARGET - 1000,
      WAIT_MS_MAX,
    )
    await words.untilSays(SMALL, 'Refilling', 'False NotNeeded')
    await words.untilSays(SMALL, 'Ready', 'True LevelSufficient')
    const more = await creator.createUntil((made) => made >= 100)
    expect(new Set([...codes, ...more]).size).toBe(codes.length + more.length)
    // One for the first codes, one when they ran low.
    expect(await madeFor(SMALL)).toHaveLength(2)
    expect((await words.get(SMALL)).status).toMatchObject({
      ...{ refills: 2, failures: 0, storeName: SMALL },
      lastRefill: { refill: 2, outcome: 'Succeeded' },
    })
    const told = await describePool(SMALL)
    for (const word of ['RefillBegun', 'RefillSucceeded', 'LevelSufficient', 'NotNeeded'])
      expect(told).toContain(word)
    process.stdout.write(`${codes.length} links were made\n`)
  },
  TEST_MS_MAX,
)

interface Pod {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly status: { readonly phase: string }
}

/** Pods of refills of `mended` that have not begun. */
async function waitingPods(): Promise<readonly Pod[]> {
  const asked = ['pods', '--namespace', RELEASE, '-l', `curtail.dev/codepool=${MENDED}`]
  const { items } = await getObject<{ items: readonly Pod[] }>(...asked)
  return items.filter(({ status }) => status.phase === 'Pending')
}

test(
  'a Secret that is missing is said; a pod that is deleted costs nothing; the right one mends it',
  async () => {
    await words.untilSays(MENDED, 'Degraded', 'True SecretMissing')
    const told = await describePool(MENDED)
    expect(told).toMatch(/SecretMissing.*secret "there-is-none" not found/)
    const { status = {} } = await words.get(MENDED)
    const [first] = await waitingPods()
    if (first === undefined) throw new Error('no pod waits for the Secret')
    const { name: pod, labels } = first.metadata
    const job = labels['batch.kubernetes.io/job-name']
    await kubectl('delete', 'pod', pod, '--namespace', RELEASE, '--now')
    await waitFor(
      'another pod',
      async () => (await waitingPods()).some(({ metadata }) => metadata.name !== pod),
      WAIT_MS_MAX,
    )
    expect((await words.get(MENDED)).status?.refills).toBe(status.refills)
    // It stands, though the new pod may have said nothing yet.
    expect(await words.condition(MENDED, 'Degraded')).toBe('True SecretMissing')
    const isOld = () => Promise.resolve(Date.now() - recoveredMs > SERIES_MS)
    await waitFor('a minute to be over', isOld, SERIES_MS)
    // From now on a recovery is the same event once more.
    expect(await words.condition(MENDED, 'Degraded')).toBe('True SecretMissing')
    await words.change(MENDED, { codeSecret: { name: MISSING } })
    await words.untilSays(MENDED, 'Ready', 'True LevelSufficient')
    await words.untilSays(MENDED, 'Degraded', 'False AsExpected')
    expect(await words.jobs(MENDED)).not.toContain(job)
    expect(await describePool(MENDED)).toContain('RefillCancelled')
  },
  TEST_MS_MAX,
)

interface Role {
  readonly rules: readonly {
    readonly apiGroups: readonly string[]
    readonly resources: readonly string[]
    readonly verbs: readonly string[]
  }[]
}

test(
  'it was refused nothing, and used every right that it has',
  async () => {
    const { rules } = await getObject<Role>('role', `${FULL_NAME}-controller`, '-n', RELEASE)
    const granted = rules.flatMap(({ apiGroups: [group = ''], resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
    )
    const usedBy = (calls: readonly Audited[]) =>
      [...new Set(calls.map(({ verb, resource }) => `${verb} ${resource}`))].sort()
    await waitFor(
      'an event that is told once more',
      async () => usedBy(await auditedCalls()).includes('patch events.k8s.io/events'),
      WAIT_MS_MAX,
    )
    // Its Lease was made when the release came; the rest is of this file.
    expect(usedBy(await auditedCalls())).toEqual([...new Set(granted)].sort())
    const forbidden = (await auditedCalls(begunMs)).filter(({ isForbidden }) => isForbidden)
    expect(forbidden).toEqual([])
  },
  TEST_MS_MAX,
)
