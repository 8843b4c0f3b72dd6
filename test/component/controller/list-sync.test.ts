// The controller of operator lists on a real API server, with only its permissions: it annotates
// the pods after a change, and receives no contents of the lists.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { KubeApi } from '../../../src/kube/api.ts'
import { createListController } from '../../../src/kube/list-sync/list-controller.ts'
import { systemScheduler } from '../../../src/kube/scheduler.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { ANNOTATION, OBJECTS, PATHS } from '../../kit/kube/list-world.ts'
import { quietLog } from '../../kit/kube/kube-watcher.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 180_000
const SELECTOR = 'app=curtail,component in (create,redirect)'
const CONTENT = 'content-of-a-list'
const RBAC = 'rbac.authorization.k8s.io'
/** The permissions of docs/controller.md for operator lists, and for pods. */
const RULES = [
  ...OBJECTS.map(({ plural, name }) => ({
    ...{ apiGroups: [''], resources: [plural], resourceNames: [name] },
    verbs: ['get', 'list', 'watch', 'update'],
  })),
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'patch'] },
]

let server: KubeApiserver
let admin: KubeApi
const metrics = createMetrics()
const received: string[] = []
const stopping = new AbortController()
let leading: Promise<void> | undefined

/** Records what the API server sends. */
function recording(api: KubeApi): KubeApi {
  return {
    async call(call) {
      const response = await api.call(call)
      received.push(JSON.stringify(response))
      return response
    },
    async *lines(call) {
      for await (const line of api.lines(call)) {
        received.push(line)
        yield line
      }
    },
  }
}

const create = (path: string, body: object) => admin.call({ method: 'POST', path, body })
const labelled = (component: string) => ({ labels: { app: 'curtail', component } })
const podOf = (name: string, labels: object) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, ...labels } },
  spec: { containers: [{ name: 'c', image: 'none' }], automountServiceAccountToken: false },
})
const annotationOf = async (name: string) => {
  const pod = await admin.call({ method: 'GET', path: `${PATHS.pods}/${name}` })
  const { annotations } = (pod as { metadata: { annotations?: Record<string, string> } }).metadata
  return annotations?.[ANNOTATION]
}

beforeAll(async () => {
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  admin = server.as('admin')
  await create('/api/v1/namespaces', {
    ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } },
  })
  const root = `/apis/${RBAC}/v1/namespaces/n`
  const metadata = { name: 'controller' }
  const apiVersion = `${RBAC}/v1`
  await create(`${root}/roles`, { apiVersion, kind: 'Role', metadata, rules: RULES })
  await create(`${root}/rolebindings`, {
    ...{ apiVersion, kind: 'RoleBinding', metadata },
    roleRef: { apiGroup: RBAC, kind: 'Role', name: 'controller' },
    subjects: [{ kind: 'User', name: 'controller', apiGroup: RBAC }],
  })
  await create(PATHS.secrets, {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys' } },
    stringData: { 'api-keys.ndjson': CONTENT },
  })
  await create(PATHS.configmaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'blocked' } },
  })
  for (const component of ['create', 'redirect', 'edge'])
    await create(PATHS.pods, podOf(component, labelled(component)))
  leading = createListController({
    api: recording(server.as('controller', metrics)),
    ...{ namespace: 'n', objects: OBJECTS, podSelector: SELECTOR },
    ...{ scheduler: systemScheduler, random: Math.random, metrics },
    log: { ...quietLog, info: () => undefined } as never,
    onState: () => undefined,
  }).lead(stopping.signal)
}, START_MS_MAX)

afterAll(async () => {
  stopping.abort()
  await leading
  await server.stop()
})

test(
  'a change of either object annotates the selected pods, and nothing is forbidden',
  async () => {
    const confirmed: (string | undefined)[] = []
    const waitForNext = () =>
      waitFor('both pods to be annotated', async () => {
        const [ofCreate, ofRedirect] = [
          await annotationOf('create'),
          await annotationOf('redirect'),
        ]
        const isNew = ofCreate?.endsWith('.confirmed') === true && !confirmed.includes(ofCreate)
        if (isNew && ofCreate === ofRedirect) confirmed.push(ofCreate)
        return isNew && ofCreate === ofRedirect
      })
    await waitForNext()
    for (const { plural, name } of OBJECTS) {
      await admin.call({
        method: 'PATCH',
        path: `${PATHS[plural]}/${name}`,
        contentType: 'application/merge-patch+json',
        body: { data: { list: Buffer.from(CONTENT).toString('base64') } },
      })
      await waitForNext()
    }
    expect(await annotationOf('edge')).toBeUndefined()
    expect(await metrics.registry.metrics()).not.toMatch(/requests_total\{code="4\d\d"/)
  },
  TEST_MS_MAX,
)

test('the API server has sent no contents of the lists', () => {
  expect(received.some((document) => document.includes('"name":"keys"'))).toBe(true)
  const contents = [CONTENT, Buffer.from(CONTENT).toString('base64')]
  for (const document of received)
    for (const content of contents) expect(document).not.toContain(content)
})

test('the permissions allow no other Secret, and no list of all', async () => {
  const api = server.as('controller')
  const get = (path: string) => api.call({ method: 'GET', path })
  await expect(get(`${PATHS.secrets}/other`)).rejects.toMatchObject({ status: 403 })
  await expect(get(PATHS.secrets)).rejects.toMatchObject({ status: 403 })
  await expect(get(`${PATHS.secrets}/keys`)).resolves.toMatchObject({ kind: 'Secret' })
})
