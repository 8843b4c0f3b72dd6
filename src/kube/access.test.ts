// Address and credentials from kubeconfigs in a temporary folder, errors outside a cluster, and a
// command that opens a list in the API server with them.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { waitFor } from '../../test/kit/wait-for.ts'
import { OperatorError } from '../process/role.ts'
import { type ClusterAccess, openAccess } from './access.ts'
import { type ListKind, withListTarget } from './operator-lists/open-list-target.ts'

const base64 = (value: string) => Buffer.from(value).toString('base64')

let folder: string
let kubeconfig: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-access-'))
  kubeconfig = join(folder, 'kubeconfig')
})
afterEach(async () => {
  jest.restoreAllMocks()
  await rm(folder, { recursive: true })
})

/** The fields of a kubeconfig with one cluster, one user and one context. */
interface Config {
  readonly cluster?: object
  readonly user?: object
  readonly context?: object
}

/** Writes a kubeconfig. */
const write = ({ cluster, user, context }: Config) =>
  writeFile(
    kubeconfig,
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x' },
      clusters: [{ name: 'c', cluster: { server: 'https://api.test:6443', ...cluster } }],
      users: [{ name: 'u', user: user ?? {} }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
    }),
  )

/** Writes a kubeconfig and opens it. */
async function open(config: Config): Promise<ClusterAccess> {
  await write(config)
  return openAccess({ KUBECONFIG: kubeconfig })
}

test.each([
  [{ namespace: ' links ' }, 'links'],
  [{}, 'default'],
])('the context %j has the namespace %s', async (context, expected) => {
  expect((await open({ context })).namespace).toBe(expected)
})

test('returns the address, and the TLS material of the cluster and the user', async () => {
  const access = await open({
    cluster: {
      'certificate-authority-data': base64('CA'),
      'tls-server-name': 'name.test',
      'insecure-skip-tls-verify': true,
    },
    user: {
      ...{ 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') },
      token: 'abc',
    },
  })
  expect(await access.read()).toEqual({
    server: 'https://api.test:6443',
    headers: { Authorization: 'Bearer abc' },
    tls: { ca: 'CA', cert: 'CERT', key: 'KEY', servername: 'name.test', rejectUnauthorized: false },
  })
})

test('returns no TLS material and no credentials if the kubeconfig has none', async () => {
  const { headers, tls } = await (await open({})).read()
  expect(headers).toEqual({})
  expect(Object.keys(tls).filter((name) => name !== 'rejectUnauthorized')).toEqual([])
})

test('sends a user name and a password as basic authentication', async () => {
  const { headers } = await (await open({ user: { username: 'me', password: 'pw' } })).read()
  expect(headers).toEqual({ Authorization: `Basic ${base64('me:pw')}` })
})

test('re-reads files of the kubeconfig after 10 s, not before', async () => {
  let nowMs = 1000
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const file = join(folder, 'ca.pem')
  await writeFile(file, 'old')
  const access = await open({ cluster: { 'certificate-authority': file } })
  const first = await access.read()
  await writeFile(file, 'new')
  nowMs += 9999
  expect(await access.read()).toBe(first)
  nowMs += 1
  expect([first.tls.ca, (await access.read()).tls.ca]).toEqual(['old', 'new'])
})

test('reloads the kubeconfig only after the credentials are invalidated', async () => {
  let nowMs = 1000
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const access = await open({ user: { token: 'old' } })
  const authorization = async () => (await access.read()).headers['Authorization']
  await access.read()
  await write({ user: { token: 'new' } })
  nowMs += 10_000
  expect(await authorization()).toBe('Bearer old')
  access.invalidate()
  expect(await authorization()).toBe('Bearer new')
})

test('rejects a read if the current context names no cluster', async () => {
  const access = await open({ context: { cluster: 'other' } })
  await expect(access.read()).rejects.toThrow('the current context names no cluster')
})

test.each([
  ['outside a pod', {}, 'KUBERNETES_SERVICE_HOST is not set'],
  ['without a service account', { KUBERNETES_SERVICE_HOST: '127.0.0.1' }, 'ENOENT'],
  ['if the kubeconfig does not exist', { KUBECONFIG: '/does/not/exist' }, '/does/not/exist'],
])('rejects %s with an error for the operator', async (_name, config, cause) => {
  const error = await openAccess(config).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(OperatorError)
  expect(String(error)).toContain(cause)
})

const LIST: ListKind = {
  ...{ fileSetting: 'FILE', objectSetting: 'OBJECTS', kind: 'ConfigMap' },
  ...{ dataKey: 'list.txt', mode: 0o640 },
}
const unset = { path: undefined, KUBECONFIG: undefined, KUBERNETES_SERVICE_HOST: undefined }

test('opens a list in the namespace of the kubeconfig, and closes the connection', async () => {
  const urls: (string | undefined)[] = []
  const server = createServer((req, res) => {
    urls.push(req.url)
    res.end(JSON.stringify({ metadata: { name: 'blocked' }, data: { 'list.txt': 'a\n' } }))
  })
  let connections = 0
  server.on('connection', (socket) => {
    connections++
    socket.on('close', () => connections--)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const cluster = { server: address, 'insecure-skip-tls-verify': true }
  await write({ cluster, context: { namespace: 'links' } })
  const config = { ...unset, names: ['blocked'], KUBECONFIG: kubeconfig }
  const read = await withListTarget(LIST, config, (target) => target.read())
  expect(read).toMatchObject([{ name: 'ConfigMap links/blocked', content: 'a\n' }])
  expect(urls).toEqual(['/api/v1/namespaces/links/configmaps/blocked'])
  await waitFor('the connection to close', () => connections === 0)
  const failing = withListTarget(LIST, config, async (target) => {
    await target.read()
    throw new Error('defect')
  })
  await expect(failing).rejects.toThrow('defect')
  await waitFor('the connection to close', () => connections === 0)
  await new Promise((resolve) => server.close(resolve))
})

test.each([
  [{}, 'KUBERNETES_SERVICE_HOST is not set'],
  [{ KUBERNETES_SERVICE_HOST: '127.0.0.1' }, 'ENOENT'],
])('rejects a list of objects outside a cluster: %j', async (config, cause) => {
  const opening = withListTarget(LIST, { ...unset, names: ['a'], ...config }, (target) =>
    target.read(),
  )
  const error = await opening.catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(OperatorError)
  expect(String(error)).toContain(cause)
})
