// The NetworkPolicies of a release: each pod reaches the ports that it needs, and every other
// connection is rejected.
import { afterAll, beforeAll, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, kubectl, tryRun } from './cluster.ts'
import { restrictedPod } from './pods.ts'
import {
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  upgradeRelease,
} from './release.ts'

const TEST_MS_MAX = 5 * 60_000
const POLICY_MS_MAX = 60_000
/** A pod of another application in the release's namespace. */
const OTHER_APP = 'other-app'
const idle = ['/nodejs/bin/node', '-e', 'setInterval(() => undefined, 1000)']

beforeAll(async () => {
  await ensureRelease()
  const pod = restrictedPod(OTHER_APP, { command: idle })
  await applyObjects({ ...pod, metadata: { ...pod.metadata, namespace: RELEASE } })
  const wait = ['--for=condition=Ready', '--timeout=60s', '--namespace', RELEASE]
  await kubectl('wait', `pod/${OTHER_APP}`, ...wait)
}, INSTALL_MS_MAX)

afterAll(async () => {
  await kubectl('delete', 'pod', OTHER_APP, '--namespace', RELEASE, '--now')
}, TEST_MS_MAX)

/** The ports to which each pod tries to connect; a name starts with its component. */
const targets = {
  'edge http': [`${FULL_NAME}-edge`, 80],
  'ratelimit grpc': [`${FULL_NAME}-ratelimit`, 8081],
  'ratelimit debug': [`${FULL_NAME}-ratelimit`, 6070],
  'ratelimit metrics': [`${FULL_NAME}-ratelimit`, 9090],
  'controller ads': [`${FULL_NAME}-controller`, 18_000],
  'create http': [`${FULL_NAME}-create`, 8080],
  'create admin': [`${FULL_NAME}-create`, 9090],
  'redirect http': [`${FULL_NAME}-redirect`, 8080],
  'redirect metrics': [`${FULL_NAME}-redirect`, 9090],
  cache: [`${FULL_NAME}-cache`, 6379],
  counters: [`${FULL_NAME}-counters`, 6379],
  'cassandra cql': [`${FULL_NAME}-cassandra`, 9042],
  'cassandra storage': [`${FULL_NAME}-cassandra`, 7000],
  'Kubernetes API': ['kubernetes.default.svc.cluster.local', 443],
} as const

type Target = keyof typeof targets

/** The targets that each pod needs; every other target must be rejected. */
const needs: readonly [string, readonly Target[]][] = [
  [OTHER_APP, ['edge http', 'Kubernetes API']], // the chart does not restrict its egress
  ['edge', ['ratelimit grpc', 'create http', 'redirect http']],
  ['create', ['cassandra cql', 'cache']],
  ['redirect', ['cassandra cql', 'cache']],
  ['ratelimit', ['controller ads', 'counters']],
  ['controller', ['cassandra cql', 'Kubernetes API']],
]

test.each(needs)(
  '%s reaches the targets that it needs, and no other',
  async (from, needed) => {
    const pod = from === OTHER_APP ? from : ((await podsOf(from))[0] ?? '')
    const container = from === 'edge' ? 'drain' : from
    let reached: readonly string[] = []
    const expected = [...needed].sort()
    // The policies of a pod take effect soon after its start, and a connection may time out.
    await waitFor(
      `exactly ${expected.join(', ')} to be reachable`,
      async () => {
        // The Service of a pod's own component may route to the same pod, which no policy covers.
        reached = (await reach(pod, container)).filter((name) => !name.startsWith(from))
        return reached.join() === expected.join()
      },
      POLICY_MS_MAX,
    ).catch((error: unknown) => {
      throw new Error(`${from} reaches ${reached.join(', ')}`, { cause: error })
    })
  },
  TEST_MS_MAX,
)

/**
 * The targets to which a pod can connect, sorted. A connection that is rejected by ICMP sometimes
 * emits `connect`, because the kernel closes the socket before it reports the error: only a socket
 * with a remote address is connected.
 */
async function reach(pod: string, container: string): Promise<readonly string[]> {
  const script = `
    import { connect } from 'node:net'
    const attempts = Object.entries(${JSON.stringify(targets)}).map(([name, [host, port]]) =>
      new Promise((resolve) => {
        const socket = connect({ host, port, timeout: 5000 })
        socket.on('connect', () => {
          const isConnected = socket.remoteAddress !== undefined
          socket.destroy()
          resolve(isConnected ? [name] : [])
        })
        socket.on('timeout', () => { socket.destroy(); resolve([]) })
        socket.on('error', () => resolve([]))
      }))
    console.log(JSON.stringify((await Promise.all(attempts)).flat().sort()))`
  const inside = ['exec', pod, '--container', container, '--namespace', RELEASE, '--']
  const node = ['/nodejs/bin/node', '--input-type=module', '-e', script]
  const { code, stdout, stderr } = await tryRun('kubectl', [...inside, ...node])
  if (code !== 0) throw new Error(`cannot run the script in ${pod}: ${stderr}`)
  return JSON.parse(stdout) as string[]
}

test(
  'metricsFrom and adminFrom open metrics and the admin API to a pod; removing them closes both',
  async () => {
    const peers = JSON.stringify([{ podSelector: { matchLabels: { app: OTHER_APP } } }])
    const values = ['metricsFrom', 'adminFrom'].map((name) => `networkPolicy.${name}=${peers}`)
    const opened = ['create admin', 'ratelimit metrics', 'redirect metrics']
    const always = ['edge http', 'Kubernetes API']
    const waitUntilReachable = (expected: readonly string[]) =>
      waitFor(
        `exactly ${expected.join(', ')} to be reachable`,
        async () => {
          return (await reach(OTHER_APP, OTHER_APP)).join() === [...expected].sort().join()
        },
        POLICY_MS_MAX,
      )
    try {
      await upgradeRelease(...values.flatMap((value) => ['--set-json', value]))
      await waitUntilReachable([...always, ...opened])
    } finally {
      await upgradeRelease()
    }
    await waitUntilReachable(always)
  },
  TEST_MS_MAX,
)
