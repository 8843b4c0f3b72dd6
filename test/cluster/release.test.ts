// `helm install` with default values, in a namespace of restricted pods: ready means that the first
// request works, `helm test` passes, clients are limited each for itself, and an Envoy that works
// is not taken out for its sidecar, nor lost with it.
import { beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../component/wait-for.ts'
import { applyObjects, getObject, helm, kubectl, mustRun } from './cluster.ts'
import { freeze, terminate } from './frozen-pods.ts'
import { restrictedPod } from './pods.ts'
import { edgeUrl, ensureRelease, INSTALL_MS_MAX, podsOf, RELEASE } from './release.ts'

const TEST_MS_MAX = 5 * 60_000
/** What the chart's rules let one client create at once. */
const BURST = 20
/** Probes in vain after which a container is long not ready, where three are allowed. */
const MISSED_MIN = 5
/** They take 4 s each at most: two between them, two of waiting. */
const MISSED_MS_MAX = 60_000
/** The drain of an Envoy, and twice the kubelet's wait before it starts a container anew. */
const ANEW_MS_MAX = 2 * 60_000

beforeAll(() => ensureRelease(), INSTALL_MS_MAX)

test(
  'the first requests work: a link is made, followed, and says what is left',
  async () => {
    const edge = await edgeUrl()
    const created = await fetch(`${edge}/v1/urls`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'https://example.com/first' }),
    })
    expect(created.status).toBe(201)
    const { pathname } = new URL(created.headers.get('Location') ?? '')
    const followed = await fetch(`${edge}${pathname}`, { redirect: 'manual' })
    expect(followed.status).toBe(302)
    expect(followed.headers.get('Location')).toBe('https://example.com/first')
    expect((await fetch(`${edge}/nothing`)).status).toBe(404)
    // Where the limiter's answer is late, as on a machine that is just starting all of this, the
    // edge goes on without it and says nothing of limits.
    await waitFor('the limit of redirects to be told', async () => {
      const again = await fetch(`${edge}${pathname}`, { redirect: 'manual' })
      return again.headers.get('X-RateLimit-Limit') === '500'
    })
  },
  TEST_MS_MAX,
)

test(
  'an Envoy that works stays in the Service while its sidecar hangs',
  async () => {
    const pods = await podsOf('edge')
    const before = await Promise.all(pods.map(countMissed))
    const frozen = await Promise.all(pods.map((pod) => freeze(pod, 'drain')))
    try {
      await waitFor(
        'the kubelet to miss each sidecar',
        async () => {
          const counts = await Promise.all(pods.map(countMissed))
          return counts.every((count, place) => count >= (before[place] ?? 0) + MISSED_MIN)
        },
        MISSED_MS_MAX,
      )
      const named = pods.map((pod) => `pod/${pod}`)
      const wait = ['--for=condition=Ready', '--timeout=1s', '--namespace', RELEASE]
      await kubectl('wait', ...named, ...wait)
      expect((await fetch(`${await edgeUrl()}/nothing`)).status).toBe(404)
    } finally {
      for (const { thaw } of frozen) thaw()
    }
  },
  TEST_MS_MAX,
)

test(
  'a sidecar that is ended alone has its Envoy started anew, and the pod serves again',
  async () => {
    const [pod = ''] = await podsOf('edge')
    const before = await restartsOf(pod)
    await terminate(pod, 'drain')
    await waitFor(
      'both containers to be started anew',
      async () => {
        const now = await restartsOf(pod)
        return Object.entries(now).every(([name, count]) => count > (before[name] ?? 0))
      },
      ANEW_MS_MAX,
    )
    const wait = ['--for=condition=Ready', '--timeout=60s', '--namespace', RELEASE]
    await kubectl('wait', `pod/${pod}`, ...wait)
    expect(Object.keys(before).sort()).toEqual(['drain', 'envoy'])
    // By the next sidecar, and not a minute later by Envoy's liveness probe.
    const told = await kubectl('logs', pod, '--container', 'drain', '--namespace', RELEASE)
    expect(told).toContain('Envoy is draining in a pod that continues')
  },
  TEST_MS_MAX,
)

test(
  'helm test passes',
  async () => {
    const told = await helm(4, 'test', RELEASE, '--namespace', RELEASE, '--timeout', '3m')
    expect(told).toContain('Phase:          Succeeded')
  },
  TEST_MS_MAX,
)

test(
  'two clients have two buckets: each is let through as often as the rule says',
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
      const counted = await Promise.all(names.map((name) => createUntilRefused(name, edge)))
      for (const { made, seconds, retryAfter } of counted) {
        // Two more are let through each second that it takes.
        expect(made).toBeGreaterThanOrEqual(BURST)
        expect(made).toBeLessThanOrEqual(BURST + Math.ceil(2 * seconds))
        expect(retryAfter).toBe('1')
      }
    } finally {
      await kubectl('delete', 'pod', ...names, '--namespace', RELEASE, '--now')
    }
  },
  TEST_MS_MAX,
)

/** How often the kubelet has asked a pod's sidecar in vain whether it is ready. */
async function countMissed(pod: string): Promise<number> {
  const path = '/api/v1/nodes/node1/proxy/metrics/probes'
  const lines = (await kubectl('get', '--raw', path)).split('\n')
  const said = ['container="drain"', `pod="${pod}"`, 'type="Readiness"', 'result="failed"']
  const line = lines.find((one) => {
    return one.startsWith('prober_probe_total{') && said.every((label) => one.includes(label))
  })
  return Number(line?.split(' ').at(-1) ?? 0)
}

interface Restarts {
  readonly name: string
  readonly restartCount: number
}

/** How often each container of a pod was started anew. */
async function restartsOf(pod: string): Promise<Readonly<Record<string, number>>> {
  const { status } = await getObject<{
    status: { containerStatuses: readonly Restarts[]; initContainerStatuses: readonly Restarts[] }
  }>('pod', pod, '--namespace', RELEASE)
  const all = [...status.initContainerStatuses, ...status.containerStatuses]
  return Object.fromEntries(all.map(({ name, restartCount }) => [name, restartCount]))
}

/** Creates links from inside a pod until one is refused. */
async function createUntilRefused(
  pod: string,
  edge: string,
): Promise<{ made: number; seconds: number; retryAfter: string | null }> {
  const script = `
    const ask = () => fetch('${edge}/v1/urls', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'https://example.com/bucket' }),
    })
    let made = 0
    const begunMs = performance.now()
    for (;;) {
      const answer = await ask()
      await answer.arrayBuffer()
      if (answer.status === 201 && made < 100) { made += 1; continue }
      const seconds = (performance.now() - begunMs) / 1000
      console.log(JSON.stringify({ made, seconds, retryAfter: answer.headers.get('Retry-After') }))
      break
    }`
  const inside = ['exec', pod, '--namespace', RELEASE, '--', '/nodejs/bin/node']
  const told = await mustRun('kubectl', [...inside, '--input-type=module', '-e', script])
  return JSON.parse(told) as { made: number; seconds: number; retryAfter: string | null }
}
