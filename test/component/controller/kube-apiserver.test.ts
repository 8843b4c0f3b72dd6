// CodePools on a real API server: the specs that it accepts and rejects, and the controller with
// only the permissions that the manual lists.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { KubeApi } from '../../../src/kube/api.ts'
import { readPodProblem } from '../../../src/kube/code-pool/pod-problem.ts'
import { formatMicroTime } from '../../../src/kube/conditions.ts'
import { createElection } from '../../../src/kube/lease.ts'
import { systemScheduler } from '../../../src/kube/scheduler.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { applyCrd, CODE_POOLS_CRD } from '../../kit/kube/apply-crd.ts'
import { codePoolSpecs } from '../../kit/kube/code-pool-specs.ts'
import { quietLog } from '../../kit/kube/kube-watcher.ts'
import { PoolKeeper } from '../../kit/kube/pool-keeper.ts'
import { PATHS } from '../../kit/kube/pool-world.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 180_000

let server: KubeApiserver
let admin: KubeApi

beforeAll(async () => {
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  admin = server.as('admin')
  await applyCrd(admin, CODE_POOLS_CRD)
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } }
  await admin.call({ method: 'POST', path: '/api/v1/namespaces', body: namespace })
}, START_MS_MAX)

afterAll(async () => {
  await server.stop()
})

const poolOf = (name: string, spec: object) => ({
  apiVersion: 'curtail.dev/v1alpha1',
  kind: 'CodePool',
  metadata: { name },
  spec: { lowWater: 2000, target: 5000, codeSecret: { name: 'secret' }, ...spec },
})
/** The server's error for a CodePool, or `accepted`. */
const acceptanceOf = async (body: object) => {
  const query = { dryRun: 'All', fieldValidation: 'Strict' }
  try {
    await admin.call({ method: 'POST', path: PATHS.pools, body, query })
    return 'accepted'
  } catch (error) {
    return (error as Error).message
  }
}

test.each(codePoolSpecs)('a CodePool with %j: %s', async (spec, result) => {
  expect(await acceptanceOf(poolOf('p', spec))).toContain(result)
})

test('the API server rejects a name that is too long for a Job', async () => {
  const response = await acceptanceOf(poolOf('p'.repeat(64), {}))
  expect(response).toContain('metadata.name must have at most 63 characters')
})

test('the API server sets defaults, and rejects a change of storeName', async () => {
  const path = `${PATHS.pools}/fixed`
  const created = await admin.call({
    method: 'POST',
    path: PATHS.pools,
    body: poolOf('fixed', { job: {} }),
  })
  expect(created).toMatchObject({
    spec: { paused: false, codeSecret: { key: 'secret' }, job: { activeDeadlineSeconds: 3600 } },
  })
  const contentType = 'application/merge-patch+json'
  const change = (spec: object) =>
    admin.call({ method: 'PATCH', path, body: { spec }, contentType })
  await expect(change({ storeName: 'other' })).rejects.toThrow('spec.storeName is immutable')
  await change({ target: 9000 })
  await admin.call({ method: 'DELETE', path })
})

/** The controller's permissions in a watched namespace; charts/curtail renders the same. */
const RULES = [
  { apiGroups: ['curtail.dev'], resources: ['codepools'], verbs: ['list', 'watch'] },
  { apiGroups: ['curtail.dev'], resources: ['codepools/status'], verbs: ['patch'] },
  {
    apiGroups: ['batch'],
    resources: ['jobs'],
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
  },
  { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['list', 'create', 'patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
  {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    resourceNames: ['curtail-controller'],
    verbs: ['get', 'update'],
  },
]

describe('the controller with only its own permissions', () => {
  let keeper: PoolKeeper
  const metrics = createMetrics()

  beforeAll(async () => {
    const group = 'rbac.authorization.k8s.io'
    const root = `/apis/${group}/v1/namespaces/n`
    const metadata = { name: 'controller' }
    const role = { apiVersion: `${group}/v1`, kind: 'Role', metadata, rules: RULES }
    await admin.call({ method: 'POST', path: `${root}/roles`, body: role })
    const binding = {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: group, kind: 'Role', name: 'controller' },
      subjects: [{ kind: 'User', name: 'controller', apiGroup: group }],
    }
    await admin.call({ method: 'POST', path: `${root}/rolebindings`, body: binding })
    keeper = new PoolKeeper(server.as('controller', metrics), metrics)
  })
  afterAll(async () => {
    await keeper.stop()
  })

  interface Pool {
    readonly status?: { readonly conditions?: { type: string; status: string; reason: string }[] }
  }
  const waitForCondition = (name: string, type: string, expected: string) =>
    waitFor(`${type} ${expected}`, async () => {
      const path = `${PATHS.pools}/${name}`
      const { status } = (await admin.call({ method: 'GET', path })) as Pool
      const found = status?.conditions?.find((one) => one.type === type)
      return `${found?.status ?? ''} ${found?.reason ?? ''}` === expected
    })
  const jobs = async () => {
    const list = await admin.call({ method: 'GET', path: PATHS.jobs })
    return (list as { items: { metadata: { name: string; creationTimestamp: string } }[] }).items
  }
  const callsOf = async (matches: (method: unknown) => boolean) => {
    const { values } = await metrics.apiRequests.get()
    const matching = values.filter(({ labels }) => matches(labels.method))
    return matching.reduce((sum, { value }) => sum + value, 0)
  }
  const writeCount = () => callsOf((method) => method !== 'GET')
  const postCount = () => callsOf((method) => method === 'POST')

  test(
    'fills a pool with a Job that the API server accepts, reports it, and then writes nothing',
    async () => {
      await admin.call({ method: 'POST', path: PATHS.pools, body: poolOf('p', {}) })
      await waitForCondition('p', 'Refilling', 'True JobRunning')
      const [job] = await jobs()
      if (job === undefined) throw new Error('no Job found')
      expect(await jobs()).toHaveLength(1)
      keeper.setRow('n/p', { minted: 5 })
      const time = new Date().toISOString().replace(/\.\d+/, '')
      const condition = (type: string) => ({
        ...{ type, status: 'True', reason: 'CompletionsReached', message: '' },
        ...{ lastProbeTime: time, lastTransitionTime: time },
      })
      const status = {
        startTime: job.metadata.creationTimestamp,
        completionTime: time,
        succeeded: 1,
        conditions: [condition('SuccessCriteriaMet'), condition('Complete')],
      }
      await admin.call({
        method: 'PATCH',
        path: `${PATHS.jobs}/${job.metadata.name}/status`,
        body: { status },
        contentType: 'application/merge-patch+json',
      })
      await waitForCondition('p', 'Ready', 'True LevelSufficient')
      await waitForCondition('p', 'Refilling', 'False NotNeeded')
      await waitFor('its events', async () => {
        const list = await admin.call({ method: 'GET', path: PATHS.events })
        const { items } = list as { items: { reason: string; regarding: { kind: string } }[] }
        const ours = items.filter(({ regarding }) => regarding.kind === 'CodePool')
        return (
          ours
            .map(({ reason }) => reason)
            .sort()
            .join() === 'RefillStarted,RefillSucceeded'
        )
      })
      await waitFor('the owner of the pool', () => keeper.rows.get('n/p')?.owner === 'n/p')
      // An event exists before it is counted, which happens after the response.
      await waitFor('the count of a Job and two events', async () => (await postCount()) === 3)
      const before = await writeCount()
      for (let i = 0; i < 20; i++) await keeper.levels.refresh()
      expect(await writeCount()).toBe(before)
      expect(await metrics.registry.metrics()).not.toMatch(/requests_total\{code="403"/)
    },
    TEST_MS_MAX,
  )

  test(
    'deletes a Job of an earlier spec',
    async () => {
      await admin.call({ method: 'POST', path: PATHS.pools, body: poolOf('q', {}) })
      await waitForCondition('q', 'Refilling', 'True JobRunning')
      const jobNames = async () => (await jobs()).map(({ metadata }) => metadata.name)
      const before = (await jobNames()).find((name) => name.startsWith('q-'))
      const body = { spec: { codeSecret: { name: 'right' } } }
      const contentType = 'application/merge-patch+json'
      await admin.call({ method: 'PATCH', path: `${PATHS.pools}/q`, body, contentType })
      await waitFor('another Job', async () => {
        const names = (await jobNames()).filter((name) => name.startsWith('q-'))
        return names.length === 1 && names[0] !== before
      })
      expect(await metrics.registry.metrics()).not.toMatch(/requests_total\{code="403"/)
    },
    TEST_MS_MAX,
  )

  test('the problem of a pod that cannot start comes from its own events only', async () => {
    const labels = { 'batch.kubernetes.io/job-name': 'slow' }
    const container = { name: 'refill', image: 'none' }
    const pod = (await admin.call({
      method: 'POST',
      path: PATHS.pods,
      body: {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'slow-x', labels } },
        spec: { containers: [container], automountServiceAccountToken: false },
      },
    })) as { metadata: { uid: string } }
    const createEvent = (name: string, uid: string, note: string) =>
      admin.call({
        method: 'POST',
        path: PATHS.events,
        body: {
          ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name } },
          ...{
            eventTime: formatMicroTime(Date.now()),
            type: 'Warning',
            reason: 'FailedMount',
            note,
          },
          ...{ action: 'Mount', reportingController: 'kubelet', reportingInstance: 'n1' },
          regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'n', name: 'slow-x', uid },
        },
      })
    await createEvent('one', pod.metadata.uid, 'MountVolume.SetUp failed: secret "s" not found')
    await createEvent('other', 'another-uid', 'another pod')
    const { signal } = new AbortController()
    const api = server.as('controller', metrics)
    expect(await readPodProblem(api, { namespace: 'n', job: 'slow', signal })).toEqual({
      reason: 'SecretMissing',
      message: 'FailedMount: MountVolume.SetUp failed: secret "s" not found',
    })
  })

  test('a Lease is acquired, renewed and released', async () => {
    const election = createElection({
      api: server.as('controller', metrics),
      namespace: 'n',
      name: 'curtail-controller',
      identity: 'one',
      scheduler: systemScheduler,
      random: Math.random,
      wallMs: Date.now,
      metrics,
      log: quietLog,
      times: { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 100 },
    })
    const stopping = new AbortController()
    expect(await election.acquire(stopping.signal)).toBe(true)
    const renewing = election.renew(stopping.signal)
    const path = '/apis/coordination.k8s.io/v1/namespaces/n/leases/curtail-controller'
    const read = async () => (await admin.call({ method: 'GET', path })) as { spec: object }
    const first = await read()
    await waitFor('a renewal', async () => JSON.stringify(await read()) !== JSON.stringify(first))
    stopping.abort()
    expect(await renewing).toBe('stopped')
    await election.release()
    expect(await read()).toMatchObject({ spec: { holderIdentity: '', leaseDurationSeconds: 1 } })
  })
})
