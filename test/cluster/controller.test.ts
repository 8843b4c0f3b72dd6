// The controller on a cluster that runs real refill Jobs: pools that run low, deleted Jobs and
// pods, a missing Secret; its conditions and events for these; and that it uses exactly the
// permissions that its Role grants.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { healthInArgo, statusInFlux } from '../kit/gitops-health.ts'
import { waitFor } from '../kit/wait-for.ts'
import { getObject, kubectl } from './cluster.ts'
import {
  CODE_SECRET,
  createCodeSecret,
  type CodePoolClient,
  createCodePoolClient,
} from './code-pools.ts'
import { type CreatePod, startCreatePod } from './create-pod.ts'
import { type AuditedCall, readAuditedCalls, openKubeApi } from './kube-api.ts'
import { ensureRelease, FULL_NAME, INSTALL_MS_MAX, RELEASE, runInController } from './release.ts'

const TEST_MS_MAX = 5 * 60_000
const WAIT_MS_MAX = 120_000
/** The controller writes an event of the same series after one minute at the earliest. */
const SERIES_MS = 61_000
const LOW_WATER = 2000
const TARGET = 5000
/** The controller fills it, and a create pod empties it. */
const SMALL = 'small'
/** Degraded whenever its Secret is missing. */
const DEGRADED = 'degraded'
const MISSING = 'created-later'

let pools: CodePoolClient
let createPod: CreatePod
let close: () => void
let startedMs: number
/** When the pool `degraded` recovered for the first time. */
let recoveredMs: number

const specOf = (storeName: string) => ({
  ...{ lowWater: LOW_WATER, target: TARGET, storeName, codeSecret: CODE_SECRET },
})

beforeAll(async () => {
  await ensureRelease()
  startedMs = Date.now()
  const opened = await openKubeApi()
  close = opened.close
  pools = createCodePoolClient(opened.api)
  await pools.create(DEGRADED, { ...specOf(DEGRADED), codeSecret: { name: MISSING } })
  await pools.create(SMALL, specOf(SMALL))
}, INSTALL_MS_MAX)

afterAll(async () => {
  await createPod.stop()
  await kubectl('delete', 'codepools', SMALL, DEGRADED, '--namespace', RELEASE)
  await kubectl('delete', 'secret', MISSING, '--namespace', RELEASE)
  close()
}, TEST_MS_MAX)

/** The status of a pool by the health checks of docs/gitops.md. */
async function healthOf(name: string): Promise<string> {
  const pool = await pools.get(name)
  return `${(await healthInArgo('CodePool', pool)).status} ${statusInFlux('CodePool', pool)}`
}

const describePool = (name: string) => kubectl('describe', 'codepool', name, '-n', RELEASE)
/** The creations of a pool's Jobs since the start of this file. */
const createdJobsOf = async (pool: string) =>
  (await readAuditedCalls(startedMs)).filter(
    ({ verb, resource, name, code }) =>
      verb === 'create' && resource === 'batch/jobs' && name.startsWith(pool) && code === 201,
  )

test(
  'the controller recreates a deleted Job, which runs once its Secret exists',
  async () => {
    await waitFor('a Job', async () => (await pools.jobs(DEGRADED)).length === 1, WAIT_MS_MAX)
    const [job = ''] = await pools.jobs(DEGRADED)
    await kubectl('delete', 'job', job, '--namespace', RELEASE, '--wait=false')
    await createCodeSecret(MISSING)
    await waitFor(
      'JobDeleted',
      async () => (await describePool(DEGRADED)).includes('JobDeleted'),
      WAIT_MS_MAX,
    )
    await pools.waitForCondition(DEGRADED, 'Ready', 'True LevelSufficient')
    await pools.waitForCondition(DEGRADED, 'Degraded', 'False AsExpected')
    recoveredMs = Date.now()
    expect((await pools.get(DEGRADED)).status).toMatchObject({ refills: 2, failures: 0 })
    // Prepares the test of the missing Secret, to reduce its wait.
    await pools.patch(DEGRADED, {
      ...{ lowWater: 2 * TARGET, target: 3 * TARGET },
      codeSecret: { name: 'nonexistent' },
    })
  },
  TEST_MS_MAX,
)

test(
  'a pool that runs low is refilled to its target by one Job',
  async () => {
    await pools.waitForCondition(SMALL, 'Ready', 'True LevelSufficient')
    createPod = await startCreatePod(SMALL)
    const codes = await createPod.createUntilLevel(LOW_WATER - 1, WAIT_MS_MAX)
    expect(new Set(codes).size).toBe(codes.length)
    await waitFor(
      'the level to reach the target',
      async () => (await createPod.levelOf(SMALL)) >= TARGET - 1000,
      WAIT_MS_MAX,
    )
    await pools.waitForCondition(SMALL, 'Refilling', 'False NotNeeded')
    await pools.waitForCondition(SMALL, 'Ready', 'True LevelSufficient')
    const more = await createPod.createUntil((created) => created >= 100)
    expect(new Set([...codes, ...more]).size).toBe(codes.length + more.length)
    // One Job for the first codes, and one at low water.
    expect(await createdJobsOf(SMALL)).toHaveLength(2)
    expect((await pools.get(SMALL)).status).toMatchObject({
      ...{ refills: 2, failures: 0, storeName: SMALL },
      lastRefill: { refill: 2, outcome: 'Succeeded' },
    })
    const description = await describePool(SMALL)
    for (const reason of ['RefillStarted', 'RefillSucceeded', 'LevelSufficient', 'NotNeeded'])
      expect(description).toContain(reason)
    process.stdout.write(`${codes.length} links created\n`)
  },
  TEST_MS_MAX,
)

interface Pod {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly status: { readonly phase: string }
}

/** The pending refill pods of the pool `degraded`. */
async function pendingPods(): Promise<readonly Pod[]> {
  const args = ['pods', '--namespace', RELEASE, '-l', `curtail.dev/codepool=${DEGRADED}`]
  const { items } = await getObject<{ items: readonly Pod[] }>(...args)
  return items.filter(({ status }) => status.phase === 'Pending')
}

test(
  'a missing Secret is reported; a deleted pod costs no refill; an existing Secret resolves it',
  async () => {
    await pools.waitForCondition(DEGRADED, 'Degraded', 'True SecretMissing')
    const description = await describePool(DEGRADED)
    expect(description).toMatch(/SecretMissing.*secret "nonexistent" not found/)
    expect(await healthOf(DEGRADED)).toBe('Degraded Failed')
    const { status = {} } = await pools.get(DEGRADED)
    const [first] = await pendingPods()
    if (first === undefined) throw new Error('no pod waits for the Secret')
    const { name: pod, labels } = first.metadata
    const job = labels['batch.kubernetes.io/job-name']
    await kubectl('delete', 'pod', pod, '--namespace', RELEASE, '--now')
    await waitFor(
      'another pod',
      async () => (await pendingPods()).some(({ metadata }) => metadata.name !== pod),
      WAIT_MS_MAX,
    )
    expect((await pools.get(DEGRADED)).status?.refills).toBe(status.refills)
    // The condition remains although the new pod may not have reported a reason yet.
    expect(await pools.condition(DEGRADED, 'Degraded')).toBe('True SecretMissing')
    const isOld = () => Promise.resolve(Date.now() - recoveredMs > SERIES_MS)
    await waitFor('a minute to be over', isOld, SERIES_MS)
    // From now on a recovery is another event of the same series.
    expect(await pools.condition(DEGRADED, 'Degraded')).toBe('True SecretMissing')
    await pools.patch(DEGRADED, { codeSecret: { name: MISSING } })
    await pools.waitForCondition(DEGRADED, 'Ready', 'True LevelSufficient')
    await pools.waitForCondition(DEGRADED, 'Degraded', 'False AsExpected')
    expect(await healthOf(DEGRADED)).toBe('Healthy Current')
    expect(await pools.jobs(DEGRADED)).not.toContain(job)
    expect(await describePool(DEGRADED)).toContain('RefillCancelled')
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
  'every call was allowed, and every permission of the Role was used',
  async () => {
    const { rules } = await getObject<Role>('role', `${FULL_NAME}-controller`, '-n', RELEASE)
    const granted = rules.flatMap(({ apiGroups: [group = ''], resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
    )
    const usedBy = (calls: readonly AuditedCall[]) =>
      [...new Set(calls.map(({ verb, resource }) => `${verb} ${resource}`))].sort()
    await runInController('key', 'create', 'audited')
    await runInController('key', 'revoke', 'audited')
    await runInController('block', 'add', 'audited.example')
    await runInController('block', 'remove', 'audited.example')
    await waitFor(
      'an update of an event series',
      async () => usedBy(await readAuditedCalls()).includes('patch events.k8s.io/events'),
      WAIT_MS_MAX,
    )
    // The Lease was created at installation, before this file started.
    expect(usedBy(await readAuditedCalls())).toEqual([...new Set(granted)].sort())
    const forbidden = (await readAuditedCalls(startedMs)).filter(({ isForbidden }) => isForbidden)
    expect(forbidden).toEqual([])
  },
  TEST_MS_MAX,
)
