// The commands `key` and `block` on a real API server, with only the permissions that they require:
// conflicts, missing permissions, and lists that need several ConfigMaps.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parseApiKeys } from '../../../src/create/api-keys.ts'
import type { KubeApi } from '../../../src/kube/api.ts'
import { createObjectTarget } from '../../../src/kube/operator-lists/object-target.ts'
import { addLines } from '../../../src/process/list-target.ts'
import { messageOf } from '../../../src/resilience/message-of.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { type ActionSink, startActionSink } from '../../kit/processes/action-sink.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 120_000
const SECRETS = '/api/v1/namespaces/n/secrets'
const CONFIG_MAPS = '/api/v1/namespaces/n/configmaps'
const CONFIG_MAP_NAMES = ['blocked-1', 'blocked-2', 'blocked-3']

let server: KubeApiserver
let admin: KubeApi
let folder: string
let sink: ActionSink

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-lists-'))
  sink = await startActionSink()
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  admin = server.as('admin')
  const create = (path: string, body: object) => admin.call({ method: 'POST', path, body })
  await create('/api/v1/namespaces', { metadata: { name: 'n' } })
  for (const name of ['keys-1', 'keys-2']) await create(SECRETS, { metadata: { name } })
  for (const name of CONFIG_MAP_NAMES) await create(CONFIG_MAPS, { metadata: { name } })
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/n'
  const rule = (resources: string[], resourceNames: string[]) => ({
    ...{ apiGroups: [''], resources, resourceNames, verbs: ['get', 'update'] },
  })
  const rules = [rule(['secrets'], ['keys-1']), rule(['configmaps'], CONFIG_MAP_NAMES)]
  await create(`${rbac}/roles`, { metadata: { name: 'operator' }, rules })
  const apiGroup = 'rbac.authorization.k8s.io'
  await create(`${rbac}/rolebindings`, {
    metadata: { name: 'operator' },
    roleRef: { apiGroup, kind: 'Role', name: 'operator' },
    subjects: [{ kind: 'User', name: 'controller', apiGroup }],
  })
  await server.writeKubeconfig(join(folder, 'kubeconfig'), 'controller', 'n')
}, START_MS_MAX)

afterAll(async () => {
  sink.close()
  await server.stop()
  await rm(folder, { recursive: true })
})

const run = (command: string, env: Record<string, string>) =>
  runCurtail(command.split(' '), {
    ...{ KUBECONFIG: join(folder, 'kubeconfig'), ADMIN_URL: sink.url },
    ...env,
  })
const readData = async (path: string) => {
  const { data = {} } = (await admin.call({ method: 'GET', path })) as { data?: object }
  return data as Record<string, string>
}

test(
  'concurrent commands create keys in a Secret, and each key is in the list',
  async () => {
    const env = { API_KEYS_SECRET: 'keys-1' }
    const names = ['a', 'b', 'c']
    const created = await Promise.all(names.map((name) => run(`key create ${name}`, env)))
    expect(created.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
    const data = await readData(`${SECRETS}/keys-1`)
    const content = Buffer.from(data['api-keys.ndjson'] ?? '', 'base64').toString()
    const { value } = parseApiKeys([{ path: '', content }])
    expect(created.map(({ stdout }) => value.find(stdout.trim(), 0)?.name)).toEqual(names)
    expect(await run('key revoke a c', env)).toMatchObject({ stdout: 'a revoked\nc revoked\n' })
    const { stdout } = await run('key list --json', env)
    expect(JSON.parse(stdout)).toMatchObject({ name: 'b' })
  },
  TEST_MS_MAX,
)

test('a change of another client between read and write is kept', async () => {
  const path = `${CONFIG_MAPS}/blocked-1`
  const statuses: string[] = []
  const api: Pick<KubeApi, 'call'> = {
    async call(given) {
      if (given.method === 'PUT' && statuses.length === 0) {
        const body = { data: { 'blocked-targets.txt': 'other.example\n' } }
        const contentType = 'application/merge-patch+json'
        await admin.call({ method: 'PATCH', path, body, contentType })
      }
      const result = server.as('controller').call(given)
      if (given.method === 'PUT') statuses.push(await result.then(String, messageOf))
      return result
    },
  }
  const target = createObjectTarget({
    ...{ api, kind: 'ConfigMap', namespace: 'n', names: ['blocked-1'], setting: 'LISTS' },
    dataKey: 'blocked-targets.txt',
  })
  await target.update((documents) => {
    const contents = addLines(documents, ['evil.example'])
    return { contents: contents ?? new Map<string, string>(), result: undefined }
  })
  expect(statuses).toHaveLength(2)
  expect(statuses[0]).toContain('the object has been modified')
  expect(await readData(path)).toEqual({ 'blocked-targets.txt': 'other.example\nevil.example\n' })
})

test('a missing permission is an error with the verbs that are required', async () => {
  const failed = await run('key create x', { API_KEYS_SECRET: 'keys-1,keys-2' })
  expect([failed.exitCode, failed.stdout]).toEqual([1, ''])
  expect(failed.stderr).toMatch(/^curtail: [^\n]*\n$/)
  expect(failed.stderr).toContain(
    'Cannot read Secret n/keys-2: permission is missing: the command requires the verbs get and ' +
      'update for secrets in namespace n (secrets "keys-2" is forbidden: ',
  )
})

test(
  'an import fills one ConfigMap after the other, and removes nothing',
  async () => {
    const env = { BLOCKED_TARGETS_CONFIG_MAPS: CONFIG_MAP_NAMES.join(',') }
    expect(await run('block add kept.example', env)).toMatchObject({ exitCode: 0 })
    const before = await readData(`${CONFIG_MAPS}/blocked-1`)
    const hosts = Array.from({ length: 75_000 }, (_, at) => `host-${at}.list-of-hosts.example`)
    await writeFile(join(folder, 'hosts'), hosts.join('\n'))
    const file = join(folder, 'hosts')
    const imported = await run(`block import ${file}`, env)
    expect(imported).toEqual({
      exitCode: 0,
      stdout: '75000 entries added, 0 already in the list\n',
      stderr: '',
    })
    const contents: string[] = []
    for (const name of CONFIG_MAP_NAMES) {
      const data = await readData(`${CONFIG_MAPS}/${name}`)
      contents.push(data['blocked-targets.txt'] ?? '')
    }
    expect(contents.join('')).toBe(`${before['blocked-targets.txt'] ?? ''}${hosts.join('\n')}\n`)
    expect(contents.filter((content) => content.length > 100_000)).toHaveLength(3)
    expect(await run(`block import ${file}`, env)).toMatchObject({
      stdout: '0 entries added, 75000 already in the list\n',
    })
    const matched = await run('block list --match=http://www.host-74999.list-of-hosts.example', env)
    expect(matched.stdout).toBe('blocked by host-74999.list-of-hosts.example\n')
  },
  TEST_MS_MAX,
)
