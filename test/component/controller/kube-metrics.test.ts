// The metrics of the controller in the catalogue: each has a value on a fake API server, in the
// controller alone or in its role.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { isOfController, observedNames } from '../../kit/metric-names.ts'
import { TEMPLATE } from '../../kit/kube/pool-keeper.ts'
import { PATHS, type PoolWorld, startPoolWorld } from '../../kit/kube/pool-world.ts'
import { type RoleProcess, startRole } from '../../kit/processes/role-process.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 120_000
/** The role reconciles its pools every 15 s. */
const METRICS_MS_MAX = 60_000
/** Verified by src/kube/work-queue.test.ts. */
const testedElsewhere = [
  'controller_runtime_terminal_reconcile_errors_total',
  'controller_runtime_reconcile_panics_total',
]

const internalError = { status: 500, reason: 'InternalError' }
const noEvents = ({ path }: { path: string }) =>
  path === PATHS.events ? { status: 403, reason: 'Forbidden' } : undefined

let world: PoolWorld
let folder: string

beforeEach(async () => {
  world = await startPoolWorld()
  folder = await mkdtemp(join(tmpdir(), 'curtail-metrics-'))
})
afterEach(async () => {
  world.fake.reject = () => undefined
  await world.stop()
  await rm(folder, { recursive: true })
})

/** The role, in the same namespace of the same API server, without a store. */
async function startController(): Promise<RoleProcess> {
  const [kubeconfig, template] = [join(folder, 'kubeconfig'), join(folder, 'template.yaml')]
  const config = {
    clusters: [
      { name: 'c', cluster: { server: world.fake.url, 'insecure-skip-tls-verify': true } },
    ],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'n' } }],
    'current-context': 'x',
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  await writeFile(template, TEMPLATE)
  const store = { CASSANDRA_CONTACT_POINTS: '127.0.0.1', CASSANDRA_PORT: '1' }
  return startRole({
    role: 'controller',
    wrapper: ['setpriv', '--pdeathsig', 'KILL'],
    env: {
      ...{ KUBECONFIG: kubeconfig, REFILL_POD_TEMPLATE: template, ADMIN_PORT: '0' },
      ...{ ...store, CASSANDRA_LOCAL_DC: 'dc1' },
      ...{ ADS_PORT: '0', RATELIMIT_DOMAINS: '[{"domain":"d","namespaces":["n"]}]' },
    },
  })
}

/** Sends a request that is not HTTP/2, which the xDS server rejects. */
async function sendToAdsPort(role: RoleProcess): Promise<void> {
  const portOf = () => role.log.find(({ adsPort }) => adsPort !== undefined)?.['adsPort']
  await waitFor('the port for limiters', () => portOf() !== undefined)
  const response = fetch(`http://127.0.0.1:${String(portOf())}`)
  await expect(response).rejects.toThrow('fetch failed')
}

test(
  'the controller exposes a value of each of its metrics',
  async () => {
    world.onJob = (job) => {
      setImmediate(() => {
        world.finishJob(job, 'Failed', 'BackoffLimitExceeded')
      })
    }
    world.fake.reject = noEvents
    world.createPool('p')
    await waitFor('a failed refill', () => world.condition('p', 'Degraded').startsWith('True'))
    world.isStoreUnavailable = true
    await world.levels.refresh()
    world.isStoreUnavailable = false
    world.fake.reject = ({ method, path }) =>
      method === 'PATCH' ? internalError : noEvents({ path })
    world.fake.expire()
    world.createPool('q')
    world.fake.store.create('/apis/curtail.dev/v1alpha1/namespaces/n/ratelimitpolicies', {
      metadata: { name: 'p' },
      spec: { match: [], limits: [], mode: 'Enforce', onStoreError: 'Local' },
      status: { conditions: [{ type: 'Accepted', status: 'True', reason: 'Accepted' }] },
    })
    const role = await startController()
    try {
      await sendToAdsPort(role)
      const all = await world.metrics.registry.getMetricsAsJSON()
      let missing = all
        .map(({ name }) => name)
        .filter((name) => isOfController(name) && !testedElsewhere.includes(name))
      expect(missing.length).toBeGreaterThan(15)
      const adminUrl = `http://127.0.0.1:${String(role.ready['adminPort'])}`
      const areAllSet = async () => {
        const ofRole = await (await fetch(`${adminUrl}/metrics`)).text()
        const observed = observedNames(`${await world.metrics.registry.metrics()}\n${ofRole}`)
        missing = missing.filter((name) => !observed.has(name))
        return missing.length === 0
      }
      // A timeout is reported by the expectation below.
      await waitFor('every metric', areAllSet, METRICS_MS_MAX).catch(() => undefined)
      expect(missing).toEqual([])
    } finally {
      await role.stop()
    }
  },
  TEST_MS_MAX,
)
