// The role `controller` as its own process, several of them, against a fake API server: how one
// leads, how the next takes over, and how each ends.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../parts/fake-kube-api.ts'
import { TEMPLATE } from '../parts/pool-keeper.ts'
import { PATHS } from '../parts/pool-world.ts'
import { type RoleProcess, startRole } from './role-process.ts'
import { inTime, waitFor } from './wait-for.ts'

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/n/leases'
const TEST_MS_MAX = 90_000
const ANSWER_MS_MAX = 5000
/** It ends within 3 s of a SIGTERM; five times that. */
const END_MS_MAX = 15_000

let fake: FakeKubeApi
let folder: string
let running: RoleProcess[] = []

beforeEach(async () => {
  fake = await startFakeKubeApi()
  folder = await mkdtemp(join(tmpdir(), 'curtail-controller-'))
})
afterEach(async () => {
  for (const { child } of running) child.kill('SIGKILL')
  await Promise.all(running.map(({ ended }) => ended))
  running = []
  await fake.stop()
  await rm(folder, { recursive: true })
})

async function start(more: Readonly<Record<string, string>> = {}): Promise<RoleProcess> {
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
      CASSANDRA_PORT: '1', // nobody is there
      CASSANDRA_LOCAL_DC: 'dc1',
      ...more,
    },
  })
  running.push(role)
  return role
}

const holder = () =>
  (fake.store.get(LEASES, 'lease')?.['spec'] ??
    fake.store.get(LEASES, 'curtail-controller')?.['spec'] ??
    {}) as { holderIdentity?: string; renewTime?: string }
/** It holds the Lease and has heard so: a candidate held between the two never led. */
const leads = (role: RoleProcess) =>
  holder().holderIdentity === role.ready['identity'] &&
  role.log.some(({ msg }) => msg === 'leading')
const ask = async (role: RoleProcess, path: string) => {
  const url = `http://127.0.0.1:${String(role.ready['adminPort'])}${path}`
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
  return { status: answer.status, text: await answer.text() }
}
/** How it ends; says what it logged last where it does not. */
const endOf = (role: RoleProcess) => {
  return inTime('the end', role.ended, END_MS_MAX).catch((error: unknown) => {
    throw new Error(JSON.stringify(role.log.slice(-10)), { cause: error })
  })
}
const makePool = (name: string) =>
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
  'it is ready once it has read all, leads, and says what is wrong; SIGTERM ends it in good order',
  async () => {
    fake.refuse = ({ path }) =>
      path === PATHS.pools ? { status: 404, reason: 'NotFound' } : undefined
    makePool('p')
    const role = await start()
    await waitFor('the missing kind to be said', async () =>
      (await ask(role, '/readyz')).text.includes('"codepools":"down"'),
    )
    expect((await ask(role, '/readyz')).status).toBe(503)
    expect((await ask(role, '/livez')).status).toBe(200)
    expect(holder().holderIdentity).toBeUndefined()
    fake.refuse = () => undefined
    await waitFor('readiness', async () => (await ask(role, '/readyz')).status === 200)
    await waitFor('the lead', () => leads(role))
    await waitFor('the store to be said', () => reasonOf('p') === 'StoreUnavailable')
    const { text } = await ask(role, '/metrics')
    expect(text).toContain('leader_election_master_status{name="curtail-controller"} 1')
    expect(text).toMatch(/rest_client_requests_total\{code="404",method="GET",host="127/)
    const begunMs = performance.now()
    role.child.kill('SIGTERM')
    expect(await endOf(role)).toBe(0)
    process.stdout.write(`ended ${Math.round(performance.now() - begunMs)} ms after SIGTERM\n`)
    expect(holder().holderIdentity).toBe('')
    expect(JSON.stringify(role.log)).not.toContain('secret-token')
  },
  TEST_MS_MAX,
)

test(
  'released it is taken at once, hung within 20 s; who slept past its time writes nothing',
  async () => {
    const one = await start()
    await waitFor('the lead', () => leads(one))
    const two = await start()
    const three = await start()
    await waitFor('all to be ready', async () => {
      const states = await Promise.all([two, three].map((role) => ask(role, '/readyz')))
      return states.every(({ status }) => status === 200)
    })
    makePool('p')
    await waitFor('its status', () => reasonOf('p') === 'StoreUnavailable')

    let begunMs = performance.now()
    one.child.kill('SIGTERM')
    await waitFor('the next', () => leads(two) || leads(three))
    const releasedMs = performance.now() - begunMs
    expect(await endOf(one)).toBe(0)

    const [second, third] = leads(two) ? [two, three] : [three, two]
    begunMs = performance.now()
    second.child.kill('SIGSTOP')
    makePool('q')
    await waitFor('the third', () => leads(third), 30_000)
    const sleptMs = performance.now() - begunMs
    await waitFor('the new pool', () => reasonOf('q') === 'StoreUnavailable')
    const told = () => fake.store.list(PATHS.events).filter((e) => e.metadata.name.startsWith('q.'))
    await waitFor('its event', () => told().length === 1)
    const writes = fake.calls.length
    second.child.kill('SIGCONT')
    expect(await endOf(second)).toBe(1)
    const after = fake.calls.slice(writes)
    const others = after.filter(({ method, path }) => method !== 'GET' && !path.startsWith(LEASES))
    expect(others).toEqual([])
    expect(leads(third)).toBe(true)
    process.stdout.write(
      `next after SIGTERM: ${Math.round(releasedMs)} ms, SIGSTOP: ${Math.round(sleptMs)} ms\n`,
    )
    expect(releasedMs).toBeLessThan(15_000)
    expect(sleptMs).toBeLessThan(30_000)
  },
  TEST_MS_MAX,
)
