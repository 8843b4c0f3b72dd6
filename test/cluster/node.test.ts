// The test cluster itself: what the charts' tests take for granted is true of it.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../component/wait-for.ts'
import {
  applyObjects,
  deleteNamespace,
  getObject,
  kubectl,
  makeNamespace,
  onNode,
  tryRun,
} from './cluster.ts'
import { restrictedPod, serviceOf } from './pods.ts'

const NAMESPACE = 'node-test'
const TEST_MS_MAX = 120_000

beforeAll(() => makeNamespace(NAMESPACE), TEST_MS_MAX)
afterAll(() => deleteNamespace(NAMESPACE), 2 * TEST_MS_MAX)

interface Node {
  readonly status: {
    readonly conditions: readonly { readonly type: string; readonly status: string }[]
    readonly nodeInfo: { readonly kubeletVersion: string }
  }
}

test('the node is ready, and of the version that go.mod names', async () => {
  const { status } = await getObject<Node>('node', 'node1')
  expect(status.conditions).toContainEqual(
    expect.objectContaining({ type: 'Ready', status: 'True' }),
  )
  expect(status.nodeInfo.kubeletVersion).toBe('v1.34.10')
})

test('a pod that is not of the restricted kind is refused', async () => {
  const args = ['run', 'bad', '--image=localhost/curtail:test', '--namespace', NAMESPACE]
  const { code, stderr } = await tryRun('kubectl', args)
  expect([code, stderr]).toEqual([1, expect.stringContaining('violates PodSecurity "restricted')])
})

test(
  'our image runs standalone in a restricted pod, and answers through a Service',
  async () => {
    const pod = restrictedPod('alone', {
      args: ['standalone'],
      env: { DATA_DIR: '/data', BASE_URL: 'http://alone' },
      writable: ['/data'],
    })
    await applyObjects(...inNamespace(pod, serviceOf('alone', { port: 80, targetPort: 8080 })))
    const wait = ['--for=condition=Ready', '--timeout=60s', '--namespace', NAMESPACE]
    await kubectl('wait', 'pod/alone', ...wait)
    const address = await addressOf('alone')
    const answers = () =>
      fetch(`http://${address}/robots.txt`).then(
        ({ ok }) => ok,
        () => false, // kube-proxy learns of a ready pod a moment later
      )
    await waitFor('the Service to answer', answers)
    const created = await fetch(`http://${address}/v1/urls`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'https://example.com/' }),
    })
    expect(created.status).toBe(201)
    const code = new URL(created.headers.get('Location') ?? '').pathname
    const followed = await fetch(`http://${address}${code}`, { redirect: 'manual' })
    expect([followed.status, followed.headers.get('Location')]).toEqual([
      302,
      'https://example.com/',
    ])
  },
  TEST_MS_MAX,
)

test(
  'a NetworkPolicy is enforced, and so is its end',
  async () => {
    const address = await addressOf('alone')
    const asker = restrictedPod('asker', {
      command: ['/nodejs/bin/node', '-e', 'setInterval(() => undefined, 1000)'],
    })
    await applyObjects(...inNamespace(asker))
    await kubectl('wait', 'pod/asker', '--for=condition=Ready', '--timeout=60s', '-n', NAMESPACE)
    const script = `console.log((await fetch('http://${address}/robots.txt')).status)`
    const asks = async () => {
      const inside = ['exec', 'asker', '-n', NAMESPACE, '--', '/nodejs/bin/node']
      const ran = await tryRun('kubectl', [...inside, '--input-type=module', '-e', script])
      return ran.stdout.trim() === '200' ? 'answered' : ran.stderr.includes('EHOSTUNREACH')
    }
    await waitFor('the Service to answer a pod', async () => (await asks()) === 'answered')
    const policy = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'nobody' },
      spec: { podSelector: { matchLabels: { app: 'alone' } }, policyTypes: ['Ingress'] },
    }
    await applyObjects(...inNamespace(policy))
    await waitFor('the pod to be refused', async () => (await asks()) === true)
    await kubectl('delete', 'networkpolicy', 'nobody', '-n', NAMESPACE)
    await waitFor('the Service to answer again', async () => (await asks()) === 'answered')
  },
  TEST_MS_MAX,
)

test(
  'a component that dies is started again',
  async () => {
    const pid = (await onNode('cat', '/run/pids/kube-apiserver')).trim()
    await onNode('kill', '-9', pid)
    await waitFor('the API server to be ready again', async () => {
      const now = (await onNode('cat', '/run/pids/kube-apiserver')).trim()
      const { code } = await tryRun('kubectl', ['get', '--raw', '/readyz'])
      return now !== pid && code === 0
    })
  },
  TEST_MS_MAX,
)

function inNamespace(...objects: readonly { metadata: object }[]): readonly object[] {
  return objects.map((one) => ({ ...one, metadata: { ...one.metadata, namespace: NAMESPACE } }))
}

async function addressOf(service: string): Promise<string> {
  const named = ['service', service, '--namespace', NAMESPACE]
  const { spec } = await getObject<{ spec: { clusterIP: string } }>(...named)
  return spec.clusterIP
}
