// The properties of the test cluster that the chart tests need.
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
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
import { restrictedPod } from './pods.ts'

const NAMESPACE = 'node-test'
const TEST_MS_MAX = 120_000
/** The rollout of k8s/standalone, twice, and the requests. */
const STANDALONE_MS_MAX = 5 * 60_000

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
  'k8s/standalone serves links, and keeps them when its pod is replaced; its log has no warning',
  async () => {
    await applyStandalone()
    const address = await addressOf('curtail-standalone')
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
    const resolve = async () => {
      const response = await fetch(`http://${address}${code}`, { redirect: 'manual' })
      return [response.status, response.headers.get('Location')]
    }
    expect(await resolve()).toEqual([302, 'https://example.com/'])
    expect(await warningsOf('curtail-standalone-0')).toEqual([])
    await kubectl('delete', 'pod', 'curtail-standalone-0', '--namespace', NAMESPACE)
    await waitForStandalone()
    await waitFor('the Service to respond after the restart', responds)
    expect(await resolve()).toEqual([302, 'https://example.com/'])
    expect(await warningsOf('curtail-standalone-0')).toEqual([])
  },
  STANDALONE_MS_MAX,
)

test(
  'a NetworkPolicy is enforced until it is deleted',
  async () => {
    const address = await addressOf('curtail-standalone')
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
    const policy = ['networkpolicy', 'curtail-standalone', '--namespace', NAMESPACE]
    await kubectl('patch', ...policy, '--type=merge', '-p', '{"spec": {"ingress": []}}')
    await waitFor('the connection to be rejected', async () => (await send()) === 'rejected')
    await kubectl('delete', ...policy)
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

/** Applies k8s/standalone by an overlay with the test image, as a user's overlay sets an image. */
async function applyStandalone(): Promise<void> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'curtail-overlay-')))
  try {
    const overlay = {
      namespace: NAMESPACE,
      resources: [relative(folder, await realpath('k8s/standalone'))],
      images: [{ name: 'localhost/curtail', newTag: 'test' }],
    }
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(overlay))
    await kubectl('apply', '-k', folder)
  } finally {
    await rm(folder, { recursive: true })
  }
  await waitForStandalone()
}

async function waitForStandalone(): Promise<void> {
  const pods = ['statefulset/curtail-standalone', '--namespace', NAMESPACE]
  await kubectl('rollout', 'status', ...pods, '--timeout=180s')
}

/** The messages of a pod's log above the level info. */
async function warningsOf(pod: string): Promise<readonly unknown[]> {
  const lines = (await kubectl('logs', pod, '--namespace', NAMESPACE)).trim().split('\n')
  const entries = lines.map((line) => JSON.parse(line) as { level: string; msg: string })
  expect(entries.map(({ msg }) => msg)).toContain('ready')
  return entries.filter(({ level }) => level !== 'info')
}

function inNamespace(...objects: readonly { metadata: object }[]): readonly object[] {
  return objects.map((one) => ({ ...one, metadata: { ...one.metadata, namespace: NAMESPACE } }))
}

async function addressOf(service: string): Promise<string> {
  const args = ['service', service, '--namespace', NAMESPACE]
  const { spec } = await getObject<{ spec: { clusterIP: string } }>(...args)
  return spec.clusterIP
}
