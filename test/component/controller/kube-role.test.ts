// Processes of the role `controller` on a fake API server: one leads, another takes over, and each
// stops gracefully.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import { TEMPLATE } from '../../kit/kube/pool-keeper.ts'
import { PATHS } from '../../kit/kube/pool-world.ts'
import { type RoleProcess, startRole } from '../../kit/processes/role-process.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/n/leases'
const TEST_MS_MAX = 180_000
const RESPONSE_MS_MAX = 5000
/** Five times the 3 s within which it exits after SIGTERM. */
const EXIT_MS_MAX = 15_000

let fake: FakeKubeApi
let folder: string
let running: RoleProcess[] = []

beforeEach(async () => {
  fake = await startFakeKubeApi()
  folder = await mkdtemp(join(tmpdir(), 'curtail-controller-'))
})
afterEach(async () => {
  for (const { child } of running) child.kill('SIGKILL')
  await Promise.all(running.map(({ exited }) => exited))
  running = []
  await fake.stop()
  await rm(folder, { recursive: true })
})

async function start(extraEnv: Readonly<Record<string, string>> = {}): Promise<RoleProcess> {
  const [kubeconfig, template] = [join(folder, 'kubeconfig'), join(folder, 'template.yaml')]
  const cluster = { server: fake.url, 'insecure-skip-tls-verify': true }
  const context = { cluster: 'c', user: 'u', namespace: 'n' }
  const config = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 'secret-token' } }],
    contexts: [{ name: 'x', context }],
    'current-context': 'x',
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  await writeFile(template, TEMPLATE)
  const role = await startRole({
    role: 'controller',
    wrapper: ['setpriv', '--pdeathsig', 'KILL'],
    env: {
      KUBECONFIG: kubeconfig,
      REFILL_POD_TEMPLATE: template,
      ADMIN_PORT: '0',
      CASSANDRA_CONTACT_POINTS: '127.0.0.1',
      CASSANDRA_PORT: '1', // no Cassandra listens there
      CASSANDRA_LOCAL_DC: 'dc1',
      ...extraEnv,
    },
  })
  running.push(role)
  return role
}

const holder = () =>
  (fake.store.get(LEASES, 'lease')?.['spec'] ??
    fake.store.get(LEASES, 'curtail-controller')?.['spec'] ??
    {}) as { holderIdentity?: string; renewTime?: string }
/** Holds the Lease and has logged it; a candidate that stops in between never leads. */
const leads = (role: RoleProcess) =>
  holder().holderIdentity === role.ready['identity'] &&
  role.log.some(({ msg }) => msg === 'acquired leadership')
const getAdmin = async (role: RoleProcess, path: string) => {
  const url = `http://127.0.0.1:${String(role.ready['adminPort'])}${path}`
  const response = await fetch(url, { signal: AbortSignal.timeout(RESPONSE_MS_MAX) })
  return { status: response.status, text: await response.text() }
}
/** The exit code; throws the last log lines if the process does not exit. */
const exitCodeOf = (role: RoleProcess) => {
  return withinDeadline('the controller to exit', role.exited, EXIT_MS_MAX).catch(
    (error: unknown) => {
      throw new Error(JSON.stringify(role.log.slice(-10)), { cause: error })
    },
  )
}
const createPool = (name: string) =>
  fake.store.create(PATHS.pools, {
    metadata: { name },
    spec: {
      ...{ lowWater: 2000, target: 5000, paused: false },
      codeSecret: { name: 's', key: 'secret' },
    },
  })
const reasonOf = (name: string) => {
  const { status } = fake.store.get(PATHS.pools, name) as unknown as {
    status?: { conditions?: readonly { type: string; reason: string }[] }
  }
  return status?.conditions?.find(({ type }) => type === 'Degraded')?.reason
}

test(
  'the controller is ready after all lists, leads, reports problems, and stops on SIGTERM',
  async () => {
    fake.reject = ({ path }) =>
      path === PATHS.pools ? { status: 404, reason: 'NotFound' } : undefined
    createPool('p')
    const role = await start()
    await waitFor('the missing CRD to be reported', async () =>
      (await getAdmin(role, '/readyz')).text.includes('"codepools in n":"down"'),
    )
    expect((await getAdmin(role, '/readyz')).status).toBe(503)
    expect((await getAdmin(role, '/livez')).status).toBe(200)
    expect(holder().holderIdentity).toBeUndefined()
    fake.reject = () => undefined
    await waitFor('readiness', async () => (await getAdmin(role, '/readyz')).status === 200)
    await waitFor('leadership', () => leads(role))
    await waitFor(
      'the unavailable store to be reported',
      () => reasonOf('p') === 'StoreUnavailable',
    )
    const { text } = await getAdmin(role, '/metrics')
    expect(text).toContain('leader_election_master_status{name="curtail-controller"} 1')
    expect(text).toMatch(/rest_client_requests_total\{code="404",method="GET",host="127/)
    const startedMs = performance.now()
    role.child.kill('SIGTERM')
    expect(await exitCodeOf(role)).toBe(0)
    process.stdout.write(`exited ${Math.round(performance.now() - startedMs)} ms after SIGTERM\n`)
    expect(holder().holderIdentity).toBe('')
    expect(JSON.stringify(role.log)).not.toContain('secret-token')
  },
  TEST_MS_MAX,
)

test(
  'another replica takes over from a stopped or stalled leader, which then writes nothing',
  async () => {
    const one = await start()
    await waitFor('leadership', () => leads(one))
    const two = await start()
    const three = await start()
    await waitFor('all to be ready', async () => {
      const states = await Promise.all([two, three].map((role) => getAdmin(role, '/readyz')))
      return states.every(({ status }) => status === 200)
    })
    createPool('p')
    await waitFor('the status', () => reasonOf('p') === 'StoreUnavailable')

    let startedMs = performance.now()
    one.child.kill('SIGTERM')
    await waitFor('the next leader', () => leads(two) || leads(three))
    const releasedMs = performance.now() - startedMs
    expect(await exitCodeOf(one)).toBe(0)

    const [second, third] = leads(two) ? [two, three] : [three, two]
    startedMs = performance.now()
    second.child.kill('SIGSTOP')
    createPool('q')
    await waitFor('the third to lead', () => leads(third), 30_000)
    const stalledMs = performance.now() - startedMs
    await waitFor('the status of the new pool', () => reasonOf('q') === 'StoreUnavailable')
    const eventsOfPool = () =>
      fake.store.list(PATHS.events).filter((e) => e.metadata.name.startsWith('q.'))
    await waitFor('the event', () => eventsOfPool().length === 1)
    const writes = fake.calls.length
    second.child.kill('SIGCONT')
    expect(await exitCodeOf(second)).toBe(1)
    const after = fake.calls.slice(writes)
    const otherWrites = after.filter(
      ({ method, path }) => method !== 'GET' && !path.startsWith(LEASES),
    )
    expect(otherWrites).toEqual([])
    expect(leads(third)).toBe(true)
    process.stdout.write(
      `leader after SIGTERM: ${Math.round(releasedMs)} ms, SIGSTOP: ${Math.round(stalledMs)} ms\n`,
    )
    expect(releasedMs).toBeLessThan(15_000)
    expect(stalledMs).toBeLessThan(30_000)
  },
  TEST_MS_MAX,
)
