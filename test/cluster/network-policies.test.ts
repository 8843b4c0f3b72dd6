// Who may reach whom in the namespace of a release: every pair that is needed is let through, and
// every other one that is tried is refused.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
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
import { waitFor } from '../component/wait-for.ts'

const TEST_MS_MAX = 5 * 60_000
const POLICY_MS_MAX = 60_000
const STRANGER = 'stranger'
const idle = ['/nodejs/bin/node', '-e', 'setInterval(() => undefined, 1000)']

beforeAll(async () => {
  await ensureRelease()
  const pod = restrictedPod(STRANGER, { command: idle })
  await applyObjects({ ...pod, metadata: { ...pod.metadata, namespace: RELEASE } })
  const wait = ['--for=condition=Ready', '--timeout=60s', '--namespace', RELEASE]
  await kubectl('wait', `pod/${STRANGER}`, ...wait)
}, INSTALL_MS_MAX)

afterAll(async () => {
  await kubectl('delete', 'pod', STRANGER, '--namespace', RELEASE, '--now')
}, TEST_MS_MAX)

/** Where connections are tried to, by the component that listens. */
const targets = {
  'edge http': [`${FULL_NAME}-edge`, 80],
  'ratelimit grpc': [`${FULL_NAME}-ratelimit`, 8081],
  'ratelimit debug': [`${FULL_NAME}-ratelimit`, 6070],
  'ratelimit metrics': [`${FULL_NAME}-ratelimit`, 9090],
  'create http': [`${FULL_NAME}-create`, 8080],
  'create admin': [`${FULL_NAME}-create`, 9090],
  'redirect http': [`${FULL_NAME}-redirect`, 8080],
  'redirect metrics': [`${FULL_NAME}-redirect`, 9090],
  cache: [`${FULL_NAME}-cache`, 6379],
  counters: [`${FULL_NAME}-counters`, 6379],
  'cassandra cql': [`${FULL_NAME}-cassandra`, 9042],
  'cassandra storage': [`${FULL_NAME}-cassandra`, 7000],
  'the API of Kubernetes': ['kubernetes.default.svc.cluster.local', 443],
} as const

type Target = keyof typeof targets

/** What each pod needs; whatever else is there is to be refused. */
const needs: readonly [string, readonly Target[]][] = [
  [STRANGER, ['edge http', 'the API of Kubernetes']], // its own doings are no business of the chart
  ['edge', ['ratelimit grpc', 'create http', 'redirect http']],
  ['create', ['cassandra cql', 'cache']],
  ['redirect', ['cassandra cql', 'cache']],
  ['ratelimit', ['counters']],
  ['controller', ['cassandra cql', 'the API of Kubernetes']],
]

test.each(needs)(
  '%s reaches what it needs, and nothing else',
  async (from, needed) => {
    const pod = from === STRANGER ? from : ((await podsOf(from))[0] ?? '')
    const container = from === 'edge' ? 'drain' : from
    // Of its own kind a pod finds itself, which no policy is about.
    const reached = (await reach(pod, container)).filter((name) => !name.startsWith(from))
    expect(reached).toEqual([...needed].sort())
  },
  TEST_MS_MAX,
)

/**
 * The targets that a pod can connect to, in order. A connection that is refused by ICMP is at times
 * told as made, for the kernel has closed the socket before it says why: only one that has a peer
 * has been made.
 */
async function reach(pod: string, container: string): Promise<readonly string[]> {
  const script = `
    import { connect } from 'node:net'
    const tried = Object.entries(${JSON.stringify(targets)}).map(([name, [host, port]]) =>
      new Promise((resolve) => {
        const socket = connect({ host, port, timeout: 5000 })
        socket.on('connect', () => {
          const isMade = socket.remoteAddress !== undefined
          socket.destroy()
          resolve(isMade ? [name] : [])
        })
        socket.on('timeout', () => { socket.destroy(); resolve([]) })
        socket.on('error', () => resolve([]))
      }))
    console.log(JSON.stringify((await Promise.all(tried)).flat().sort()))`
  const inside = ['exec', pod, '--container', container, '--namespace', RELEASE, '--']
  const node = ['/nodejs/bin/node', '--input-type=module', '-e', script]
  const { code, stdout, stderr } = await tryRun('kubectl', [...inside, ...node])
  if (code !== 0) throw new Error(`nothing could be tried in ${pod}: ${stderr}`)
  return JSON.parse(stdout) as string[]
}

test(
  'who is named in the values reads metrics and uses the admin API, and nobody after that',
  async () => {
    const peers = JSON.stringify([{ podSelector: { matchLabels: { app: STRANGER } } }])
    const named = ['metricsFrom', 'adminFrom'].map((name) => `networkPolicy.${name}=${peers}`)
    const open = ['create admin', 'ratelimit metrics', 'redirect metrics']
    const usual = ['edge http', 'the API of Kubernetes']
    const untilReached = (wanted: readonly string[]) =>
      waitFor(
        `${wanted.join(', ')} to be reached`,
        async () => {
          return (await reach(STRANGER, STRANGER)).join() === [...wanted].sort().join()
        },
        POLICY_MS_MAX,
      )
    try {
      await upgradeRelease(...named.flatMap((value) => ['--set-json', value]))
      await untilReached([...usual, ...open])
    } finally {
      await upgradeRelease()
    }
    await untilReached(usual)
  },
  TEST_MS_MAX,
)
