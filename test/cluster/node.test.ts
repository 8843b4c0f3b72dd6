// The properties of the test cluster that the chart tests need.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import {
  applyObjects,
  deleteNamespace,
  getObject,
  kubectl,
  createNamespace,
  runOnNode,
  tryRun,
} from './cluster.ts'
import { restrictedPod, serviceOf } from './pods.ts'

const NAMESPACE = 'node-test'
const TEST_MS_MAX = 120_000

beforeAll(() => createNamespace(NAMESPACE), TEST_MS_MAX)
afterAll(() => deleteNamespace(NAMESPACE), 2 * TEST_MS_MAX)

interface Node {
  readonly status: {
    readonly conditions: readonly { readonly type: string; readonly status: string }[]
    readonly nodeInfo: { readonly kubeletVersion: string }
  }
}

test('the node is ready and runs the Kubernetes version that go.mod pins', async () => {
  const { status } = await getObject<Node>('node', 'node1')
  expect(status.conditions).toContainEqual(
    expect.objectContaining({ type: 'Ready', status: 'True' }),
  )
  expect(status.nodeInfo.kubeletVersion).toBe('v1.34.10')
})

test('a pod that violates the restricted Pod Security Standard is rejected', async () => {
  const args = ['run', 'bad', '--image=localhost/curtail:test', '--namespace', NAMESPACE]
  const { code, stderr } = await tryRun('kubectl', args)
  expect([code, stderr]).toEqual([1, expect.stringContaining('violates PodSecurity "restricted')])
})

test(
  'our image runs standalone in a restricted pod and responds through a Service',
  async () => {
    const pod = restrictedPod('standalone', {
      args: ['standalone'],
      env: { DATA_DIR: '/data', BASE_URL: 'http://standalone' },
      writable: ['/data'],
    })
    await applyObjects(...inNamespace(pod, serviceOf('standalone', { port: 80, targetPort: 8080 })))
    const wait = ['--for=condition=Ready', '--timeout=60s', '--namespace', NAMESPACE]
    await kubectl('wait', 'pod/standalone', ...wait)
    const address = await addressOf('standalone')
    const responds = () =>
      fetch(`http://${address}/robots.txt`).then(
        ({ ok }) => ok,
        () => false, // kube-proxy has not added the ready pod yet
      )
    await waitFor('the Service to respond', responds)
    const created = await fetch(`http://${address}/v1/urls`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'https://example.com/' }),
    })
    expect(created.status).toBe(201)
    const code = new URL(created.headers.get('Location') ?? '').pathname
    const response = await fetch(`http://${address}${code}`, { redirect: 'manual' })
    expect([response.status, response.headers.get('Location')]).toEqual([
      302,
      'https://example.com/',
    ])
  },
  TEST_MS_MAX,
)

test(
  'a NetworkPolicy is enforced until it is deleted',
  async () => {
    const address = await addressOf('standalone')
    const client = restrictedPod('client', {
      command: ['/nodejs/bin/node', '-e', 'setInterval(() => undefined, 1000)'],
    })
    await applyObjects(...inNamespace(client))
    await kubectl('wait', 'pod/client', '--for=condition=Ready', '--timeout=60s', '-n', NAMESPACE)
    const script = `console.log((await fetch('http://${address}/robots.txt')).status)`
    const send = async () => {
      const inside = ['exec', 'client', '-n', NAMESPACE, '--', '/nodejs/bin/node']
      const { stdout, stderr } = await tryRun('kubectl', [
        ...inside,
        ...['--input-type=module', '-e', script],
      ])
      if (stdout.trim() === '200') return 'ok'
      return stderr.includes('EHOSTUNREACH') ? 'rejected' : 'failed'
    }
    await waitFor('the Service to respond to a pod', async () => (await send()) === 'ok')
    const policy = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'deny-all' },
      spec: { podSelector: { matchLabels: { app: 'standalone' } }, policyTypes: ['Ingress'] },
    }
    await applyObjects(...inNamespace(policy))
    await waitFor('the connection to be rejected', async () => (await send()) === 'rejected')
    await kubectl('delete', 'networkpolicy', 'deny-all', '-n', NAMESPACE)
    await waitFor('the Service to respond after the deletion', async () => (await send()) === 'ok')
  },
  TEST_MS_MAX,
)

test(
  'a component that exits is restarted',
  async () => {
    const pid = (await runOnNode('cat', '/run/pids/kube-apiserver')).trim()
    await runOnNode('kill', '-9', pid)
    await waitFor('the restarted API server to be ready', async () => {
      const newPid = (await runOnNode('cat', '/run/pids/kube-apiserver')).trim()
      const { code } = await tryRun('kubectl', ['get', '--raw', '/readyz'])
      return newPid !== pid && code === 0
    })
  },
  TEST_MS_MAX,
)

function inNamespace(...objects: readonly { metadata: object }[]): readonly object[] {
  return objects.map((one) => ({ ...one, metadata: { ...one.metadata, namespace: NAMESPACE } }))
}

async function addressOf(service: string): Promise<string> {
  const args = ['service', service, '--namespace', NAMESPACE]
  const { spec } = await getObject<{ spec: { clusterIP: string } }>(...args)
  return spec.clusterIP
}
