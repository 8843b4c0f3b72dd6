// The commands `key` and `block` on a fake API server: changes of several objects, of which some
// are written before another one is in conflict.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import { type ActionSink, startActionSink } from '../../kit/processes/action-sink.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'

const SECRETS = '/api/v1/namespaces/n/secrets'
const CONFIG_MAPS = '/api/v1/namespaces/n/configmaps'
const TEST_MS_MAX = 180_000
const SECRET_BYTES_MAX = 900 * 1024

let fake: FakeKubeApi
let folder: string
let sink: ActionSink

beforeEach(async () => {
  sink = await startActionSink()
  fake = await startFakeKubeApi()
  folder = await mkdtemp(join(tmpdir(), 'curtail-lists-'))
  const config = {
    clusters: [{ name: 'c', cluster: { server: fake.url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { token: 'secret-token' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'n' } }],
    'current-context': 'x',
  }
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(config))
})
afterEach(async () => {
  sink.close()
  await fake.stop()
  await rm(folder, { recursive: true })
})

const run = (command: string) =>
  runCurtail(command.split(' '), {
    KUBECONFIG: join(folder, 'kubeconfig'),
    ADMIN_URL: sink.url,
    ...(command.startsWith('key')
      ? { API_KEYS_SECRET: 'one, two' }
      : { BLOCKED_TARGETS_CONFIG_MAPS: 'one,two' }),
  })
const printed = (stdout: string) => ({ exitCode: 0, stdout, stderr: '' })
/** Rejects the first write of an object as in conflict. */
const conflictOnce = (path: string) => {
  let isFirst = true
  fake.reject = (call) => {
    if (call.method !== 'PUT' || call.path !== path || !isFirst) return undefined
    isFirst = false
    return { status: 409, reason: 'Conflict' }
  }
}
const valueOf = (collection: string, name: string) =>
  Object.values(fake.store.get(collection, name)?.['data'] ?? {}).map(String)
const writes = () => fake.calls.filter(({ method }) => method === 'PUT').map(({ path }) => path)

test(
  'keys in two Secrets are created, listed, and revoked by one command despite a conflict',
  async () => {
    fake.store.create(SECRETS, { metadata: { name: 'one' } })
    fake.store.create(SECRETS, { metadata: { name: 'two' } })
    await run('key create a')
    // The first Secret has no space for another key.
    const { data } = fake.store.get(SECRETS, 'one') as unknown as { data: object }
    const filled = { ...data, other: 'x'.repeat(SECRET_BYTES_MAX) }
    fake.store.patch(SECRETS, 'one', { data: filled })
    const created = await run('key create b')
    expect(created.stdout).toMatch(/^curtail_/)
    const listed = await run('key list')
    expect(listed.stdout.match(/^[ab] /gm)).toEqual(['a ', 'b '])
    expect(listed.stderr + created.stderr).not.toContain('secret-token')

    conflictOnce(`${SECRETS}/two`)
    const revoked = await run('key revoke b a a')
    expect([revoked.exitCode, revoked.stdout]).toEqual([0, 'b revoked\na revoked\n'])
    expect(revoked.stderr.match(/^key [ab] was of creator \d/gm)).toHaveLength(2)
    expect(writes().slice(-3)).toEqual(['one', 'two', 'two'].map((name) => `${SECRETS}/${name}`))
    expect((await run('key list --json')).stdout).toBe('')
  },
  TEST_MS_MAX,
)

test(
  'counts of entries include those that were written before a conflict',
  async () => {
    const lines = ['a.example', 'b.example', 'c.example'].join('\n')
    const data = { 'blocked-targets.txt': `${lines}\n` }
    const bytes = SECRET_BYTES_MAX - 'x.example\n'.length - lines.length - 1
    const filled = { ...data, other: 'x'.repeat(bytes) }
    fake.store.create(CONFIG_MAPS, { metadata: { name: 'one' }, data: filled })
    fake.store.create(CONFIG_MAPS, { metadata: { name: 'two' }, data })
    conflictOnce(`${CONFIG_MAPS}/two`)
    expect(await run('block add x.example y.example a.example')).toEqual(
      printed('2 entries added, 1 already in the list\n'),
    )
    expect(valueOf(CONFIG_MAPS, 'one')[0]).toBe(`${lines}\nx.example\n`)
    expect(valueOf(CONFIG_MAPS, 'two')).toEqual([`${lines}\ny.example\n`])

    conflictOnce(`${CONFIG_MAPS}/two`)
    expect(await run('block remove x.example y.example z.example')).toEqual(
      printed('2 entries removed, not in the list: z.example\n'),
    )
    expect(valueOf(CONFIG_MAPS, 'two')).toEqual([`${lines}\n`])
  },
  TEST_MS_MAX,
)

test('a key that was possibly written is an error that contains how to revoke it', async () => {
  fake.store.create(SECRETS, { metadata: { name: 'one' } })
  fake.store.create(SECRETS, { metadata: { name: 'two' } })
  fake.reject = ({ method }) => (method === 'PUT' ? { status: 504, reason: 'Timeout' } : undefined)
  const failed = await run('key create a')
  expect([failed.exitCode, failed.stdout]).toEqual([1, ''])
  expect(failed.stderr).toMatch(/^curtail: Cannot write Secrets in namespace n: [^\n]*\n$/)
  expect(failed.stderr).toContain(
    ': the list may contain the key a, whose value is lost: run `key revoke a`, then create it\n',
  )
})

test('an unreadable kubeconfig, and a list without a Secret, are errors', async () => {
  const missing = await run('key list')
  expect([missing.exitCode, missing.stdout]).toEqual([1, ''])
  expect(missing.stderr).toBe(
    'curtail: Cannot read Secret n/one: it does not exist; create it with ' +
      '"kubectl create secret generic one -n n" and, for RateLimitPolicies, ' +
      '"kubectl label secret one -n n curtail.dev/api-keys=true", or change API_KEYS_SECRET\n',
  )
  const unreadable = await runCurtail(['key', 'list'], {
    ...{ API_KEYS_SECRET: 'one', KUBECONFIG: join(folder, 'none') },
  })
  expect(unreadable.exitCode).toBe(1)
  expect(unreadable.stderr).toMatch(
    /^curtail: Cannot read the address and credentials of the API server: [^\n]*\n$/,
  )
})
