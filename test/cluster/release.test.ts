// `helm install` with default values, in a namespace of restricted pods: ready means that the first
// request succeeds, `helm test` passes, each client has its own rate limit, and an Envoy keeps
// serving when its sidecar hangs and recovers when its sidecar stops.
import { beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, getObject, helm, kubectl, mustRun } from './cluster.ts'
import { suspend, terminate } from './suspend-pods.ts'
import { restrictedPod } from './pods.ts'
import { edgeUrl, ensureRelease, INSTALL_MS_MAX, podsOf, RELEASE } from './release.ts'

const TEST_MS_MAX = 5 * 60_000
/** The burst of creates per client in the chart's rules. */
const BURST = 20
/** Failed probes after which the kubelet would have reported not ready; it tolerates three. */
const FAILED_PROBES_MIN = 5
/** A probe takes at most 4 s: 2 s of period and 2 s of timeout. */
const PROBES_MS_MAX = 60_000
/** The drain of an Envoy, and twice the kubelet's back-off before it restarts a container. */
const RESTART_MS_MAX = 2 * 60_000

beforeAll(() => ensureRelease(), INSTALL_MS_MAX)

test(
  'the first requests succeed: a create, a redirect with rate-limit headers, a 404',
  async () => {
    const edge = await edgeUrl()
    const created = await fetch(`${edge}/v1/urls`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'https://example.com/first' }),
    })
    expect(created.status).toBe(201)
    const { pathname } = new URL(created.headers.get('Location') ?? '')
    const redirect = await fetch(`${edge}${pathname}`, { redirect: 'manual' })
    expect(redirect.status).toBe(302)
    expect(redirect.headers.get('Location')).toBe('https://example.com/first')
    expect((await fetch(`${edge}/nothing`)).status).toBe(404)
    // When the limiter times out, as on a machine that is just starting everything, the edge
    // responds without rate-limit headers.
    await waitFor('the limit of redirects to be reported', async () => {
      const response = await fetch(`${edge}${pathname}`, { redirect: 'manual' })
      return response.headers.get('X-RateLimit-Limit') === '500'
    })
  },
  TEST_MS_MAX,
)

test(
  'a working Envoy stays in the Service while its sidecar hangs',
  async () => {
    const pods = await podsOf('edge')
    const before = await Promise.all(pods.map(countFailedProbes))
    const suspended = await Promise.all(pods.map((pod) => suspend(pod, 'drain')))
    try {
      await waitFor(
        'the probes of each sidecar to fail',
        async () => {
          const counts = await Promise.all(pods.map(countFailedProbes))
          return counts.every((count, place) => count >= (before[place] ?? 0) + FAILED_PROBES_MIN)
        },
        PROBES_MS_MAX,
      )
      const named = pods.map((pod) => `pod/${pod}`)
      const wait = ['--for=condition=Ready', '--timeout=1s', '--namespace', RELEASE]
      await kubectl('wait', ...named, ...wait)
      expect((await fetch(`${await edgeUrl()}/nothing`)).status).toBe(404)
    } finally {
      for (const { resume } of suspended) resume()
    }
  },
  TEST_MS_MAX,
)

test(
  'when only the sidecar stops, its Envoy is restarted and the pod becomes ready',
  async () => {
    const [pod = ''] = await podsOf('edge')
    const before = await restartsOf(pod)
    await terminate(pod, 'drain')
    await waitFor(
      'both containers to be restarted',
      async () => {
        const now = await restartsOf(pod)
        return Object.entries(now).every(([name, count]) => count > (before[name] ?? 0))
      },
      RESTART_MS_MAX,
    )
    const wait = ['--for=condition=Ready', '--timeout=60s', '--namespace', RELEASE]
    await kubectl('wait', `pod/${pod}`, ...wait)
    expect(Object.keys(before).sort()).toEqual(['drain', 'envoy'])
    // The next sidecar stops Envoy, a minute before its liveness probe would.
    const logs = await kubectl('logs', pod, '--container', 'drain', '--namespace', RELEASE)
    expect(logs).toContain('Envoy is draining, but its pod is not terminating')
  },
  TEST_MS_MAX,
)

test(
  'helm test passes',
  async () => {
    const output = await helm(4, 'test', RELEASE, '--namespace', RELEASE, '--timeout', '3m')
    expect(output).toContain('Phase:          Succeeded')
  },
  TEST_MS_MAX,
)

test(
  'two clients have two buckets: each is admitted up to its own limit',
  async () => {
    const edge = await edgeUrl()
    const names = ['client-a', 'client-b']
    const idle = ['/nodejs/bin/node', '-e', 'setInterval(() => undefined, 1000)']
    const pods = names.map((name) => restrictedPod(name, { command: idle }))
    await applyObjects(
      ...pods.map((pod) => ({ ...pod, metadata: { ...pod.metadata, namespace: RELEASE } })),
    )
    try {
      for (const name of names) {
        const wait = ['--for=condition=Ready', '--timeout=60s', '--namespace', RELEASE]
        await kubectl('wait', `pod/${name}`, ...wait)
      }
      const counted = await Promise.all(names.map((name) => createUntilDenied(name, edge)))
      for (const { created, seconds, retryAfter } of counted) {
        // The bucket refills two tokens each second.
        expect(created).toBeGreaterThanOrEqual(BURST)
        expect(created).toBeLessThanOrEqual(BURST + Math.ceil(2 * seconds))
        expect(retryAfter).toBe('1')
      }
    } finally {
      await kubectl('delete', 'pod', ...names, '--namespace', RELEASE, '--now')
    }
  },
  TEST_MS_MAX,
)

/** The number of failed readiness probes of a pod's sidecar. */
async function countFailedProbes(pod: string): Promise<number> {
  const path = '/api/v1/nodes/node1/proxy/metrics/probes'
  const lines = (await kubectl('get', '--raw', path)).split('\n')
  const labels = ['container="drain"', `pod="${pod}"`, 'type="Readiness"', 'result="failed"']
  const line = lines.find((one) => {
    return one.startsWith('prober_probe_total{') && labels.every((label) => one.includes(label))
  })
  return Number(line?.split(' ').at(-1) ?? 0)
}

interface Restarts {
  readonly name: string
  readonly restartCount: number
}

/** The restart count of each container of a pod. */
async function restartsOf(pod: string): Promise<Readonly<Record<string, number>>> {
  const { status } = await getObject<{
    status: { containerStatuses: readonly Restarts[]; initContainerStatuses: readonly Restarts[] }
  }>('pod', pod, '--namespace', RELEASE)
  const all = [...status.initContainerStatuses, ...status.containerStatuses]
  return Object.fromEntries(all.map(({ name, restartCount }) => [name, restartCount]))
}

/** Creates links from inside a pod until a create is denied. */
async function createUntilDenied(
  pod: string,
  edge: string,
): Promise<{ created: number; seconds: number; retryAfter: string | null }> {
  const script = `
    const send = () => fetch('${edge}/v1/urls', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'https://example.com/bucket' }),
    })
    let created = 0
    const startedMs = performance.now()
    for (;;) {
      const response = await send()
      await response.arrayBuffer()
      if (response.status === 201 && created < 100) { created += 1; continue }
      const seconds = (performance.now() - startedMs) / 1000
      const retryAfter = response.headers.get('Retry-After')
      console.log(JSON.stringify({ created, seconds, retryAfter }))
      break
    }`
  const inside = ['exec', pod, '--namespace', RELEASE, '--', '/nodejs/bin/node']
  const output = await mustRun('kubectl', [...inside, '--input-type=module', '-e', script])
  return JSON.parse(output) as { created: number; seconds: number; retryAfter: string | null }
}
