// The role `controller` with a real Cassandra and a fake API server: the test runs the Jobs that
// the controller creates as real `refill` processes.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createCassandraCodeStore, readPools } from '../../../src/stores/cassandra/code-store.ts'
import { ownPool } from '../../../src/stores/cassandra/pool-owner.ts'
import {
  environmentOf,
  type OpenedCassandra,
  openNode,
  SETUP_MS_MAX,
} from '../../contract/open-cassandra.ts'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import type { FakeObject } from '../../kit/kube/fake-kube-store.ts'
import { TEMPLATE } from '../../kit/kube/pool-keeper.ts'
import { PATHS } from '../../kit/kube/pool-world.ts'
import { type Job, startJob } from '../../kit/processes/role-job.ts'
import { type RoleProcess, startRole } from '../../kit/processes/role-process.ts'
import { waitFor } from '../../kit/wait-for.ts'

const KEYSPACE = 'controller'
const TEST_MS_MAX = 180_000
const WAIT_MS_MAX = 90_000

let node: OpenedCassandra
let fake: FakeKubeApi
let folder: string
let controller: RoleProcess
const jobs: Job[] = []

beforeAll(async () => {
  node = await openNode(KEYSPACE)
  fake = await startFakeKubeApi()
  folder = await mkdtemp(join(tmpdir(), 'curtail-refill-'))
  for (const name of ['right', 'wrong']) await writeFile(join(folder, name), randomBytes(32))
  const kubeconfig = join(folder, 'kubeconfig')
  const cluster = { server: fake.url, 'insecure-skip-tls-verify': true }
  const config = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'n' } }],
    'current-context': 'x',
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  await writeFile(join(folder, 'template.yaml'), TEMPLATE)
  fake.store.listen(({ type, collection, object }) => {
    if (collection === PATHS.jobs && type === 'ADDED') void run(object)
  })
  controller = await startRole({
    role: 'controller',
    wrapper: ['setpriv', '--pdeathsig', 'KILL'],
    env: {
      ...environmentOf(node.cluster, KEYSPACE),
      KUBECONFIG: kubeconfig,
      REFILL_POD_TEMPLATE: join(folder, 'template.yaml'),
      ADMIN_PORT: '0',
    },
  })
}, SETUP_MS_MAX)

afterAll(async () => {
  await controller.stop()
  for (const job of jobs) job.kill()
  await fake.stop()
  await node.close()
  await rm(folder, { recursive: true })
})

interface JobSpec {
  readonly template: {
    readonly spec: {
      readonly containers: readonly { readonly env: readonly { name: string; value: string }[] }[]
      readonly volumes: readonly { readonly secret: { readonly secretName: string } }[]
    }
  }
}

/** Acts as the kubelet: runs a Job, and writes its result to the status of pod and Job. */
async function run({ metadata, ...job }: FakeObject): Promise<void> {
  const { template } = job['spec'] as JobSpec
  const variables = template.spec.containers[0]?.env.map(({ name, value }) => [name, value]) ?? []
  const secret = template.spec.volumes[0]?.secret.secretName ?? ''
  const running = startJob({
    role: 'refill',
    env: {
      ...environmentOf(node.cluster, KEYSPACE),
      ...(Object.fromEntries(variables) as Record<string, string>),
      CODE_SECRET_FILE: join(folder, secret),
    },
  })
  jobs.push(running)
  const { exitStatus, stdout, stderr } = await running.exited
  const state = { terminated: { exitCode: exitStatus, message: `${stdout}${stderr}` } }
  fake.store.create(PATHS.pods, {
    metadata: {
      name: `${metadata.name}-x`,
      labels: { 'batch.kubernetes.io/job-name': metadata.name },
    },
    status: { containerStatuses: [{ name: 'refill', state }] },
  })
  const type = exitStatus === 0 ? 'Complete' : 'Failed'
  const lastTransitionTime = new Date().toISOString()
  if (fake.store.get(PATHS.jobs, metadata.name) === undefined) return
  fake.store.patch(PATHS.jobs, metadata.name, {
    status: { conditions: [{ type, status: 'True', lastTransitionTime }] },
  })
}

interface PoolStatus {
  readonly conditions?: readonly { type: string; status: string; reason: string; message: string }[]
  readonly level?: number
  readonly refills?: number
}
const statusOf = (name: string) =>
  (fake.store.get(PATHS.pools, name)?.['status'] ?? {}) as PoolStatus
const condition = (name: string, type: string) => {
  const found = statusOf(name).conditions?.find((one) => one.type === type)
  return `${found?.status ?? ''} ${found?.reason ?? ''}`
}
const waitForCondition = (name: string, type: string, expected: string) =>
  waitFor(`${type} ${expected}`, () => condition(name, type) === expected, WAIT_MS_MAX)
const rowOf = async (pool: string) =>
  (await readPools(node.cassandra)).find((row) => row.pool === pool)

test(
  'the controller fills, owns and refills a pool, and a refill rejects another secret',
  async () => {
    const codes = createCassandraCodeStore(node.cassandra)
    fake.store.create(PATHS.pools, {
      metadata: { name: 'p' },
      spec: {
        ...{ lowWater: 2000, target: 5000, paused: false, storeName: 'default' },
        codeSecret: { name: 'right', key: 'secret' },
      },
    })
    await waitForCondition('p', 'Ready', 'True LevelSufficient')
    await waitForCondition('p', 'Refilling', 'False NotNeeded')
    await waitFor(
      'the owner of the pool',
      async () => (await rowOf('default'))?.owner === 'n/p',
      WAIT_MS_MAX,
    )
    expect(await rowOf('default')).toMatchObject({ minted: 5, lowWater: 2000, target: 5000 })
    expect([jobs.length, statusOf('p').level]).toEqual([1, 5000])
    const hasLogged = (expected: string) => controller.log.some(({ msg }) => msg === expected)
    await waitFor('the line of the refill', () => hasLogged('refill completed'))
    expect(hasLogged('refill started')).toBe(true)
    expect(controller.log.filter(({ level }) => level === 'warn')).toEqual([])

    const secretSpec = (name: string) => ({ codeSecret: { name, key: 'secret' } })
    fake.store.patch(PATHS.pools, 'p', { spec: secretSpec('wrong') })
    for (let from = 0; from < 4; from++)
      await codes.claimNext({ pool: 'default', from, writerId: crypto.randomUUID() })
    await waitFor(
      'the rejection',
      () => JSON.stringify(statusOf('p')).includes('was created with a different code secret'),
      WAIT_MS_MAX,
    )
    expect(condition('p', 'Degraded').startsWith('True')).toBe(true)
    expect((await rowOf('default'))?.minted).toBe(5)

    fake.store.patch(PATHS.pools, 'p', { spec: secretSpec('right') })
    await waitForCondition('p', 'Ready', 'True LevelSufficient')
    await waitForCondition('p', 'Degraded', 'False AsExpected')
    expect((await rowOf('default'))?.minted).toBe(9)
  },
  TEST_MS_MAX,
)

test(
  'a CodePool takes over a pool only if it names the previous owner, and creates no pool',
  async () => {
    const { cassandra } = node
    const codes = createCassandraCodeStore(cassandra)
    await codes.insertPoolIfAbsent({ pool: 'q', secretFingerprint: 'f' })
    const own = (owner: string, replaces: string | null, pool = 'q') =>
      ownPool(cassandra, { pool, owner, replaces, lowWater: 1, target: 2 })
    expect(await own('a', null)).toBe(true)
    expect(await own('a', null)).toBe(true)
    expect(await own('b', null)).toBe(false)
    expect(await own('b', 'c')).toBe(false)
    expect(await own('b', 'a')).toBe(true)
    expect(await own('a', null)).toBe(false)
    expect(await rowOf('q')).toMatchObject({ owner: 'b', lowWater: 1, target: 2, minted: 0 })
    expect(await own('a', null, 'none')).toBe(false)
    expect(await rowOf('none')).toBeUndefined()
  },
  TEST_MS_MAX,
)
