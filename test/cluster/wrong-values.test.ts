// Wrong values and missing parts, on a release that serves: each is told where somebody looks, no
// pod ends over and over without a word, and the release goes on serving as it was.
import { afterEach, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../component/wait-for.ts'
import { chartFolder } from '../component/chart-render.ts'
import { findHelm } from '../parts/helm.ts'
import {
  deleteNamespace,
  getObject,
  helm,
  kubectl,
  makeNamespace,
  mustRun,
  tryRun,
} from './cluster.ts'
import { terminate } from './frozen-pods.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  shorten,
  untilWhole,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
const TOLD_MS_MAX = 120_000
/** A namespace and release of its own, without any store. */
const LONELY = 'lonely'

let edge: string
let code: string

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await shorten(edge, 'https://example.com/faults')
}, INSTALL_MS_MAX)

afterEach(async () => {
  await upgradeRelease()
  expect(await follow()).toBe(302)
}, TEST_MS_MAX)

async function follow(): Promise<number> {
  const answer = await fetch(`${edge}/${code}`, { redirect: 'manual' })
  await answer.arrayBuffer()
  return answer.status
}

/** Upgrades to values by which it never gets ready, and does not wait. */
async function upgradeAnyway(...values: readonly string[]): Promise<void> {
  const set = values.flatMap((value) => ['--set', value])
  await helm(4, 'upgrade', RELEASE, chartFolder, '--reuse-values', ...set, '-n', RELEASE)
}

interface Pod {
  readonly status: {
    readonly podIP?: string
    readonly containerStatuses?: readonly { readonly restartCount: number }[]
    readonly initContainerStatuses?: readonly { readonly restartCount: number }[]
  }
}

test(
  'a value that is not allowed is refused with its path, and nothing changes',
  async () => {
    const refused = upgradeRelease('--set', 'edge.service.type=External')
    await expect(refused).rejects.toThrow(
      /'\/edge\/service\/type': value must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'/,
    )
    expect(await follow()).toBe(302)
  },
  TEST_MS_MAX,
)

test(
  'a missing Secret stands in the events of the pod that waits for it',
  async () => {
    // Not the Secret of the admin API: taken away and made anew, it would have another token.
    await upgradeAnyway('edge.tls.enabled=true', 'edge.tls.existingSecret=missing')
    await waitFor(
      'an event that names the Secret',
      async () => {
        const events = await kubectl('events', '--namespace', RELEASE, '--types=Warning')
        return events.includes('secret "missing" not found')
      },
      TOLD_MS_MAX,
    )
    expect(await follow()).toBe(302)
  },
  TEST_MS_MAX,
)

test(
  'a database that cannot be reached is told by the container that waits, which does not end',
  async () => {
    await makeNamespace(LONELY)
    try {
      const values = {
        image: { repository: 'localhost/curtail', tag: 'test' },
        edge: { replicas: 1, image: { repository: 'localhost/envoy', tag: 'test' } },
        ratelimit: { replicas: 1 },
        create: { replicas: 1 },
        redirect: { replicas: 1 },
        controller: { replicas: 1 },
        cassandra: { mode: 'external', external: { contactPoints: ['nowhere.invalid'] } },
        cache: { mode: 'external', external: { url: 'redis://nowhere.invalid' } },
        counters: { mode: 'external', external: { url: 'nowhere.invalid:6379' } },
      }
      const args = ['install', LONELY, chartFolder, '--namespace', LONELY, '--values', '-']
      await mustRun(await findHelm(4), args, JSON.stringify(values))
      const waiting = ['-l', 'app.kubernetes.io/component=redirect', '-c', 'wait-for-schema']
      await waitFor(
        'a word on Cassandra',
        async () => {
          const logs = ['logs', '--namespace', LONELY, ...waiting, '--tail', '100']
          return (await tryRun('kubectl', logs)).stdout.includes('nowhere.invalid')
        },
        TOLD_MS_MAX,
      )
      const { items } = await getObject<{ items: readonly Pod[] }>('pods', '--namespace', LONELY)
      const counts = items.flatMap(({ status }) => [
        ...(status.containerStatuses ?? []),
        ...(status.initContainerStatuses ?? []),
      ])
      expect(counts.length).toBeGreaterThan(5)
      expect(counts.filter(({ restartCount }) => restartCount > 0)).toEqual([])
    } finally {
      await deleteNamespace(LONELY)
    }
  },
  TEST_MS_MAX,
)

const RULES = ['configmap', `${FULL_NAME}-ratelimit`, '--namespace', RELEASE] as const
const LIMITER = 'app.kubernetes.io/component=ratelimit'
const FAULT = 'domain: edge\ndescriptors: [{ keys: client }]\n'

const rulesNow = async () =>
  (await getObject<{ data: Readonly<Record<string, string>> }>(...RULES)).data['rate-limits.yaml']
const putRules = async (text = '') =>
  kubectl('patch', ...RULES, '-p', JSON.stringify({ data: { 'rate-limits.yaml': text } }))
/** A limiter whose answer is late for once gives no headers. */
const untilLimited = () =>
  waitFor('the limit of the rules before', async () => {
    const answer = await fetch(`${edge}/${code}`, { redirect: 'manual' })
    return answer.headers.get('X-RateLimit-Limit') === '500'
  })

test(
  'an upgrade to rules with a fault is refused before it changes anything',
  async () => {
    const before = await rulesNow()
    const shop = upgradeRelease('--set', 'ratelimit.rules=domain: shop\ndescriptors: []')
    await expect(shop).rejects.toThrow('must have the domain edge')
    const refused = upgradeRelease('--set-string', `ratelimit.rules=${FAULT.replace(/,/g, '\\,')}`)
    await expect(refused).rejects.toThrow(/pre-upgrade hooks failed[^]*check-rules/)
    const job = `job/${FULL_NAME}-check-rules`
    expect(await kubectl('logs', job, '--namespace', RELEASE)).toContain('rate-limits.yaml:2')
    expect(await rulesNow()).toBe(before)
    await untilLimited()
    // The Job of the next one takes its place, and goes.
    await upgradeRelease('--set-string', 'ratelimit.rules=domain: edge\ndescriptors: []')
    const left = await kubectl('get', 'jobs,sa,cm', '-n', RELEASE, '-o', 'name')
    expect(left).not.toContain('check-rules')
  },
  TEST_MS_MAX,
)

test(
  'a fault in the ConfigMap is refused by every limiter, and the rules before outlive a restart',
  async () => {
    const before = await rulesNow()
    await putRules(FAULT)
    try {
      const found = await getObject<{ items: readonly Pod[] }>('pods', '-n', RELEASE, '-l', LIMITER)
      const pods = found.items.map(({ status }) => status.podIP ?? '')
      expect(pods).toHaveLength(2)
      await waitFor(
        'the metric of every pod to report the fault',
        async () => (await Promise.all(pods.map(countRefused))).every((count) => count > 0),
        TOLD_MS_MAX,
      )
      const logs = await kubectl('logs', '--namespace', RELEASE, '-l', LIMITER, '--tail', '50')
      expect(logs).toContain('rate-limits.yaml:2')
      await untilLimited()
      for (const pod of await podsOf('ratelimit')) await terminate(pod, 'ratelimit')
      await waitFor(
        'both containers to be restarted with the last good rules',
        async () => {
          const all = await kubectl('logs', '--namespace', RELEASE, '-l', LIMITER, '--tail', '50')
          return all.split('last good rules loaded').length === 3
        },
        TOLD_MS_MAX,
      )
      await untilWhole('deployment/ratelimit')
      await untilLimited()
    } finally {
      await putRules(before)
    }
  },
  TEST_MS_MAX,
)

/** How many sets of rules a rate-limit pod has refused, as its metrics say. */
async function countRefused(podIp: string): Promise<number> {
  const text = await (await fetch(`http://${podIp}:9090/metrics`)).text()
  return Number(/^ratelimit_service_config_load_error (\d+)$/m.exec(text)?.[1] ?? 0)
}
