// Invalid values and missing dependencies on a working release: each is reported where an operator
// looks, no pod restarts in a loop without a message, and the release continues to serve.
import { readFile } from 'node:fs/promises'
import { afterEach, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { chartFolder } from '../kit/chart/chart-render.ts'
import { findHelm } from '../dependencies/helm.ts'
import {
  deleteNamespace,
  getObject,
  helm,
  kubectl,
  createNamespace,
  mustRun,
  tryRun,
} from './cluster.ts'
import { terminate } from './suspend-pods.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  createLink,
  updateMounts,
  waitForRollout,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
const REPORTED_MS_MAX = 120_000
/** A second release, in its own namespace and without a store. */
const STORELESS = 'storeless'

let edge: string
let code: string

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await createLink(edge, 'https://example.com/faults')
}, INSTALL_MS_MAX)

afterEach(async () => {
  await upgradeRelease()
  expect(await resolveStatus()).toBe(302)
}, TEST_MS_MAX)

async function resolveStatus(): Promise<number> {
  const response = await fetch(`${edge}/${code}`, { redirect: 'manual' })
  await response.arrayBuffer()
  return response.status
}

/** Upgrades to values with which the release never gets ready; does not wait. */
async function upgradeWithoutWait(...values: readonly string[]): Promise<void> {
  const set = values.flatMap((value) => ['--set', value])
  await helm(4, 'upgrade', RELEASE, chartFolder, '--reuse-values', ...set, '-n', RELEASE)
}

interface Pod {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly status: {
    readonly podIP?: string
    readonly containerStatuses?: readonly { readonly restartCount: number }[]
    readonly initContainerStatuses?: readonly { readonly restartCount: number }[]
  }
}

test(
  'an invalid value is rejected with its path, and nothing changes',
  async () => {
    const rejected = upgradeRelease('--set', 'edge.service.type=External')
    await expect(rejected).rejects.toThrow(
      /'\/edge\/service\/type': value must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'/,
    )
    expect(await resolveStatus()).toBe(302)
  },
  TEST_MS_MAX,
)

test(
  'a missing Secret is named in an event of the pod that waits for it',
  async () => {
    // Not the Secret of the admin API: recreated, it would have another token.
    await upgradeWithoutWait('edge.tls.enabled=true', 'edge.tls.existingSecret=missing')
    await waitFor(
      'an event that names the Secret',
      async () => {
        const events = await kubectl('events', '--namespace', RELEASE, '--types=Warning')
        return events.includes('secret "missing" not found')
      },
      REPORTED_MS_MAX,
    )
    expect(await resolveStatus()).toBe(302)
  },
  TEST_MS_MAX,
)

test(
  'an unreachable database is logged by the container that waits for it, which keeps running',
  async () => {
    await createNamespace(STORELESS)
    try {
      const image = { repository: 'localhost/envoy', tag: 'test' }
      const values = {
        dnsSeconds: 1,
        image: { repository: 'localhost/curtail', tag: 'test' },
        edge: { replicas: 1, drainSeconds: 1, image },
        ratelimit: { replicas: 1 },
        create: { replicas: 1 },
        redirect: { replicas: 1 },
        controller: { replicas: 1 },
        cassandra: { mode: 'external', external: { contactPoints: ['nowhere.invalid'] } },
        cache: { mode: 'external', external: { url: 'redis://nowhere.invalid' } },
        counters: { mode: 'external', external: { url: 'nowhere.invalid:6379' } },
      }
      const args = ['install', STORELESS, chartFolder, '--namespace', STORELESS, '--values', '-']
      await mustRun(await findHelm(4), args, JSON.stringify(values))
      const waiting = ['-l', 'app.kubernetes.io/component=redirect', '-c', 'wait-for-schema']
      await waitFor(
        "Cassandra's host name in the logs",
        async () => {
          const logs = ['logs', '--namespace', STORELESS, ...waiting, '--tail', '100']
          return (await tryRun('kubectl', logs)).stdout.includes('nowhere.invalid')
        },
        REPORTED_MS_MAX,
      )
      // The kubelet reports each pod at its own time.
      let counts = await restartCountsIn(STORELESS)
      await waitFor(
        'the status of more than 5 containers',
        async () => {
          counts = await restartCountsIn(STORELESS)
          return counts.length > 5
        },
        REPORTED_MS_MAX,
      )
      expect(counts.filter(({ restartCount }) => restartCount > 0)).toEqual([])
    } finally {
      await deleteNamespace(STORELESS)
    }
  },
  TEST_MS_MAX,
)

/** The reported containers of all pods in a namespace. */
async function restartCountsIn(namespace: string): Promise<readonly { restartCount: number }[]> {
  const { items } = await getObject<{ items: readonly Pod[] }>('pods', '--namespace', namespace)
  return items.flatMap(({ status }) => [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []),
  ])
}

const RULES = ['configmap', `${FULL_NAME}-ratelimit`, '--namespace', RELEASE] as const
const LIMITER = 'app.kubernetes.io/component=ratelimit'
const INVALID_RULES = 'domain: edge\ndescriptors: [{ keys: client }]\n'

const shippedRules = new URL('../../envoy/rate-limits.yaml', import.meta.url)

const patchRules = async (text: string) =>
  kubectl('patch', ...RULES, '-p', JSON.stringify({ data: { 'rate-limits.yaml': text } }))
/** Retries, because a response has no rate-limit headers when the limiter times out. */
const waitUntilLimited = () =>
  waitFor('the limit of the previous rules', async () => {
    const response = await fetch(`${edge}/${code}`, { redirect: 'manual' })
    return response.headers.get('X-RateLimit-Limit') === '500'
  })

test(
  'an upgrade to invalid rules is rejected before it changes anything',
  async () => {
    const shop = upgradeRelease('--set', 'ratelimit.rules=domain: shop\ndescriptors: []')
    await expect(shop).rejects.toThrow('must have the domain edge')
    const empty = upgradeRelease('--set', 'ratelimit.rules=domain: edge\ndescriptors: []')
    await expect(empty).rejects.toThrow(/pre-upgrade hooks failed[^]*check-rules/)
    const rejected = upgradeRelease(
      '--set-string',
      `ratelimit.rules=${INVALID_RULES.replace(/,/g, '\\,')}`,
    )
    await expect(rejected).rejects.toThrow(/pre-upgrade hooks failed[^]*check-rules/)
    const job = `job/${FULL_NAME}-check-rules`
    expect(await kubectl('logs', job, '--namespace', RELEASE)).toContain('rate-limits.yaml:2')
    expect(await kubectl('get', ...RULES, '--ignore-not-found')).toBe('')
    expect(await kubectl('get', 'rlp', '--namespace', RELEASE, '-o', 'name')).not.toBe('')
    await waitUntilLimited()
  },
  TEST_MS_MAX,
)

test(
  'every limiter rejects invalid rules in the ConfigMap and keeps the last good ones on restart',
  async () => {
    const before = await readFile(shippedRules, 'utf8')
    await upgradeRelease('--set-json', `ratelimit.rules=${JSON.stringify(before)}`)
    // The upgrade replaced the Job of the test above, and deleted its own.
    const left = await kubectl('get', 'jobs,sa,cm,rlp', '-n', RELEASE, '-o', 'name')
    expect(left).not.toMatch(/check-rules|ratelimitpolicy/)
    await waitUntilLimited()
    await patchRules(INVALID_RULES)
    try {
      const found = await getObject<{ items: readonly Pod[] }>('pods', '-n', RELEASE, '-l', LIMITER)
      const running = found.items.filter(({ metadata }) => !metadata.deletionTimestamp)
      const pods = running.map(({ status }) => status.podIP ?? '')
      expect(pods).toHaveLength(2)
      await waitFor(
        'the metric of every pod to report the rejected rules',
        async () => {
          await updateMounts('ratelimit')
          return (await Promise.all(pods.map(countRejectedRules))).every((count) => count > 0)
        },
        REPORTED_MS_MAX,
      )
      const logs = await kubectl('logs', '--namespace', RELEASE, '-l', LIMITER, '--tail', '50')
      expect(logs).toContain('rate-limits.yaml:2')
      await waitUntilLimited()
      for (const pod of await podsOf('ratelimit')) await terminate(pod, 'ratelimit')
      await waitFor(
        'both containers to be restarted with the last good rules',
        async () => {
          const all = await kubectl('logs', '--namespace', RELEASE, '-l', LIMITER, '--tail', '50')
          return all.split('last valid rules loaded').length === 3
        },
        REPORTED_MS_MAX,
      )
      await waitForRollout('deployment/ratelimit')
      await waitUntilLimited()
    } finally {
      await patchRules(before)
    }
  },
  TEST_MS_MAX,
)

/** The number of rule sets that a rate-limit pod has rejected, from its metrics. */
async function countRejectedRules(podIp: string): Promise<number> {
  const text = await (await fetch(`http://${podIp}:9090/metrics`)).text()
  return Number(/^ratelimit_service_config_load_error (\d+)$/m.exec(text)?.[1] ?? 0)
}
