// The limits of a release as RateLimitPolicies: active on all limiters within seconds, reported in
// the status, rejected with a sentence, and kept while limiters or the controller are down.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { healthInArgo, statusInFlux } from '../kit/gitops-health.ts'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, getObject, kubectl, mustRun, tryRun } from './cluster.ts'
import { suspend } from './suspend-pods.ts'
import {
  createLink,
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  upgradeRelease,
  waitForRollout,
} from './release.ts'

const TEST_MS_MAX = 5 * 60_000
/** Limiters that have disconnected count for 90 s. */
const STATUS_MS_MAX = 150_000
/** Five times the longest delay between a change and its compilation. */
const ACTIVE_MS_MAX = 5 * 500
/** Five times the shortest time between two versions that the controller stores. */
const STORED_MS_MAX = 5 * 10_000
const REDIRECTS = `${FULL_NAME}-redirects-per-client`
/** A namespace that may write to the domain `tenant` only. */
const TENANT = 'default'
const inNamespace = ['--namespace', RELEASE]

let edge: string
let code: string

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await createLink(edge, 'https://example.com/policies')
}, INSTALL_MS_MAX)

afterAll(async () => {
  await kubectl('delete', 'ratelimitpolicies', 'elsewhere', '--ignore-not-found', ...inNamespace)
  await kubectl('delete', 'ratelimitpolicies', '--all', '--namespace', TENANT)
}, TEST_MS_MAX)

/** The limit of redirects in the response of the edge; absent if the limiter timed out. */
async function reportedLimit(): Promise<string | null> {
  const response = await fetch(`${edge}/${code}`, { redirect: 'manual' })
  await response.arrayBuffer()
  return response.headers.get('X-RateLimit-Limit')
}

const waitForLimit = (burst: number, msMax?: number) =>
  waitFor(
    `the limit of redirects to be ${burst}`,
    async () => (await reportedLimit()) === String(burst),
    msMax,
  )

/** Changes the burst of redirects. An upgrade fails unless it has the value of the chart. */
async function patchBurst(burst: number): Promise<void> {
  const value = JSON.stringify([{ op: 'replace', path: '/spec/limits/0/burst', value: burst }])
  await kubectl('patch', 'rlp', REDIRECTS, '--type=json', ...inNamespace, '-p', value)
}

/** The rows of `kubectl get rlp`: name, domain, mode, accepted, programmed, active and limiters. */
async function listPolicies(): Promise<readonly (readonly string[])[]> {
  const output = await kubectl('get', 'rlp', ...inNamespace, '--no-headers')
  const rows = output.trim().split('\n')
  return rows.map((row) => row.split(/ +/).slice(0, 7))
}

/** Waits for the last columns of a policy, reported for its current generation. */
const waitForStatus = (name: string, expected: string) =>
  waitFor(
    `the status of ${name} to be ${expected}`,
    async () => {
      const row = (await listPolicies()).find(([found]) => found === name)
      if (row?.slice(3).join(' ') !== expected) return false
      const { metadata, status } = await getObject<{
        metadata: { generation: number }
        status?: { observedGeneration?: number }
      }>('ratelimitpolicy', name, ...inNamespace)
      return status?.observedGeneration === metadata.generation
    },
    STATUS_MS_MAX,
  )

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** The condition Accepted of a policy as `STATUS REASON: MESSAGE`; waits for it. */
async function acceptedOf(name: string, namespace: string): Promise<string> {
  let found: Condition | undefined
  await waitFor(`the condition Accepted of ${name}`, async () => {
    const given = await getObject<{ status?: { conditions: readonly Condition[] } }>(
      ...['ratelimitpolicy', name, '--namespace', namespace],
    )
    found = given.status?.conditions.find(({ type }) => type === 'Accepted')
    return found !== undefined
  })
  return `${found?.status} ${found?.reason}: ${found?.message}`
}

/** The status of a policy by the health checks of docs/gitops.md. */
async function healthOf(name: string): Promise<string> {
  type Policy = Parameters<typeof statusInFlux>[1]
  const policy = await getObject<Policy>('ratelimitpolicy', name, ...inNamespace)
  const { status } = await healthInArgo('RateLimitPolicy', policy)
  return `${status} ${statusInFlux('RateLimitPolicy', policy)}`
}

const policyFor = (domain: string, name: string, namespace: string) => ({
  apiVersion: 'curtail.dev/v1alpha1',
  kind: 'RateLimitPolicy',
  metadata: { name, namespace },
  spec: {
    domain,
    match: [{ key: 'route', value: 'redirect' }],
    limits: [{ name: 'none', requests: 0, window: '1h' }],
  },
})

test(
  'every limit of the chart is active on both limiters',
  async () => {
    const names = ['creates', 'creates-per-client', 'reports-per-client', 'redirects-per-client']
    const families = ['ipv4', 'ipv6'].map((family) => `unknown-codes-per-${family}-client`)
    for (const name of [...names, ...families]) {
      await waitForStatus(`${FULL_NAME}-${name}`, 'True True 2 2')
    }
    expect(await listPolicies()).toHaveLength(6)
    expect(await healthOf(REDIRECTS)).toBe('Healthy Current')
    await waitForLimit(500)
  },
  TEST_MS_MAX,
)

test(
  'an operator resets the counters of a descriptor in a pod',
  async () => {
    const [pod = ''] = await podsOf('ratelimit')
    const command = ['/nodejs/bin/node', '/app/main.js', 'limit', 'reset', 'edge', 'route=create']
    const output = await mustRun('kubectl', ['exec', pod, ...inNamespace, '--', ...command])
    expect(output).toMatch(/^counter of .* reset\n$/)
  },
  TEST_MS_MAX,
)

test(
  'a faulty policy, or one of another domain, is rejected with a sentence and changes no limit',
  async () => {
    const faulty = policyFor('edge', 'faulty', RELEASE)
    const { spec } = faulty
    const limits = [{ name: 'none', requests: 1, window: '1 hour' }]
    const input = JSON.stringify({ ...faulty, spec: { ...spec, limits } })
    const { code: exitCode, stderr } = await tryRun('kubectl', ['apply', '-f', '-'], input)
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining('window must be a whole number'),
    ])
    await applyObjects(policyFor('shop', 'elsewhere', RELEASE))
    expect(await acceptedOf('elsewhere', RELEASE)).toMatch(/^False NotAllowed: .*shop/)
    expect(await healthOf('elsewhere')).toBe('Degraded Failed')
    await waitForLimit(500)
  },
  TEST_MS_MAX,
)

test(
  'an upgrade changes a limit, and another namespace cannot write to the domain of the edge',
  async () => {
    const values = [
      'limits.redirectBurst=400',
      'domains[0].domain=tenant',
      'domains[0].namespaces={default}',
    ]
    try {
      // Envoy's local limit stays, so that the edge needs no rollout.
      const set = [
        ...values.map((value) => `ratelimit.${value}`),
        'edge.localLimits.redirectBurst=500',
      ]
      await upgradeRelease(...set.flatMap((value) => ['--set', value]))
      await waitForLimit(400)
      await applyObjects(policyFor('edge', 'hostile', TENANT), policyFor('tenant', 'own', TENANT))
      expect(await acceptedOf('hostile', TENANT)).toMatch(/^False NotAllowed: .*edge/)
      expect(await acceptedOf('own', TENANT)).toMatch(/^True Accepted: /)
      await waitForLimit(400)
    } finally {
      await upgradeRelease()
    }
  },
  TEST_MS_MAX,
)

async function hasOnlyRunningControllers(): Promise<boolean> {
  const selector = ['-l', 'app.kubernetes.io/component=controller']
  const pods = await kubectl('get', 'pods', ...inNamespace, ...selector, '-o', 'name')
  return pods.trim().split('\n').length === 2
}

/** The version of the rules that the controller has stored in the Secret. */
async function storedVersion(): Promise<string | undefined> {
  const secret = ['secret', `${FULL_NAME}-ratelimit-version`, ...inNamespace]
  const { metadata } = await getObject<{
    metadata: { annotations?: Readonly<Record<string, string>> }
  }>(...secret)
  return metadata.annotations?.['curtail.dev/version']
}

/** The rules that a limiter applies, by its debug port. */
async function rulesOf(pod: string): Promise<string> {
  const script = `console.log(await (await fetch('http://127.0.0.1:6070/rlconfig')).text())`
  const node = ['/nodejs/bin/node', '--input-type=module', '-e', script]
  return mustRun('kubectl', ['exec', pod, ...inNamespace, '--', ...node])
}

describe('a limit that is changed with kubectl', () => {
  afterEach(async () => {
    await patchBurst(500)
    await waitForLimit(500)
  })

  test(
    'is active within seconds; a suspended limiter does not count as active',
    async () => {
      await waitFor('the leader before the upgrade to stop', hasOnlyRunningControllers)
      await patchBurst(350)
      await waitForStatus(REDIRECTS, 'True True 2 2') // both are connected to the current leader
      const [pod = ''] = await podsOf('ratelimit')
      const suspended = await suspend(pod, 'ratelimit')
      try {
        await patchBurst(300)
        await waitForStatus(REDIRECTS, 'True False 1 2')
        expect(await healthOf(REDIRECTS)).toBe('Progressing InProgress')
      } finally {
        suspended.resume()
      }
      await waitForStatus(REDIRECTS, 'True True 2 2')
      await waitForLimit(300)
      await patchBurst(250)
      await waitForLimit(250, ACTIVE_MS_MAX)
    },
    TEST_MS_MAX,
  )

  test(
    'applies to a new limiter although no controller is running',
    async () => {
      const before = await storedVersion()
      await patchBurst(260)
      const isStored = async () => (await storedVersion()) !== before
      await waitFor('the version to be stored', isStored, STORED_MS_MAX)
      await kubectl('scale', `deployment/${FULL_NAME}-controller`, '--replicas=0', ...inNamespace)
      try {
        const [pod = ''] = await podsOf('ratelimit')
        await kubectl('delete', 'pod', pod, ...inNamespace)
        await waitForRollout('deployment/ratelimit')
        const started = (await podsOf('ratelimit')).map((name) => rulesOf(name))
        for (const rules of await Promise.all(started)) expect(rules).toMatch(/\b260\b/)
        await waitForLimit(260)
      } finally {
        await kubectl('scale', `deployment/${FULL_NAME}-controller`, '--replicas=2', ...inNamespace)
      }
      await waitForRollout('deployment/controller')
      await waitForStatus(REDIRECTS, 'True True 2 2')
    },
    TEST_MS_MAX,
  )
})
