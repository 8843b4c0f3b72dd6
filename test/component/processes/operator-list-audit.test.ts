// The audit log of the commands `key` and `block`: each change is a line of standalone, or of the
// controller for lists in Kubernetes. Without an admin API, a command prints the line and succeeds.
import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import {
  inherited,
  roleArguments,
  type RoleProcess,
  startRole,
} from '../../kit/processes/role-process.ts'
import { type Run, runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
/** The deadline of a report, and the start of a process. */
const HANG_MS_MAX = 12_000
const SECRETS = '/api/v1/namespaces/n/secrets'
const CONFIG_MAPS = '/api/v1/namespaces/n/configmaps'
const token = 'a-token-of-some-length'

let folder: string
let fake: FakeKubeApi
let standalone: Standalone
let controller: RoleProcess

const pathOf = (name: string) => join(folder, name)
const files = () => ({ API_KEYS: pathOf('keys'), BLOCKED_TARGETS: pathOf('blocked') })

/** Writes a file with the address of the fake API server. */
async function writeKubeconfig(): Promise<void> {
  const config = {
    clusters: [{ name: 'c', cluster: { server: fake.url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { token: 'secret-token' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'n' } }],
    'current-context': 'x',
  }
  await writeFile(pathOf('kubeconfig'), JSON.stringify(config))
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-audit-'))
  standalone = await startStandalone({ env: { ADMIN_TOKEN: token, ...files() } })
  fake = await startFakeKubeApi()
  await writeKubeconfig()
  await writeFile(pathOf('pod.yaml'), 'spec: { containers: [] }\n')
  controller = await startRole({
    role: 'controller',
    env: {
      ...{ KUBECONFIG: pathOf('kubeconfig'), REFILL_POD_TEMPLATE: pathOf('pod.yaml') },
      ...{
        CASSANDRA_CONTACT_POINTS: '127.0.0.1',
        CASSANDRA_PORT: '1',
        CASSANDRA_LOCAL_DC: 'dc1',
        ADMIN_PORT: '0',
      },
    },
  })
}, START_MS_MAX)

afterAll(async () => {
  await standalone.stop()
  await controller.stop()
  await fake.stop()
  await rm(folder, { recursive: true })
}, START_MS_MAX)

const actionsOf = ({ log }: RoleProcess) => log.filter(({ msg }) => msg === 'operator action')

/** The fields of the only line that a command writes, without those of each line. */
async function actionOf(running: RoleProcess, command: () => Promise<unknown>): Promise<object> {
  const before = actionsOf(running).length
  await command()
  await waitFor('the line', () => actionsOf(running).length > before)
  const [line = {}, ...others] = actionsOf(running).slice(before)
  expect(others).toEqual([])
  const { time, role, ...fields } = line
  expect([time, role]).toEqual([expect.any(String), expect.any(String)])
  return fields
}

const lineWith = (fields: object) => {
  const address = expect.stringMatching(/^(::ffff:)?127\.0\.0\.1$/)
  const always = { level: 'info', msg: 'operator action', address }
  return {
    ...always,
    operator: 'ann',
    requestId: expect.any(String),
    outcome: 'success',
    ...fields,
  }
}
const onFiles = (command: string, env: Record<string, string> = {}) => {
  const api = { ADMIN_URL: standalone.adminUrl, ADMIN_TOKEN: token, OPERATOR: 'ann' }
  return runCurtail(command.split(' '), { ...files(), ...api, ...env })
}
const isQuiet = ({ exitCode, stderr }: Run) => exitCode === 0 && !stderr.includes('audit')

test(
  'each change of files is a line in the log of standalone, without the key and its hash',
  async () => {
    let key = ''
    const created = await actionOf(standalone, async () => {
      const run = await onFiles('key create shop --creator=9007199254740993')
      expect(isQuiet(run)).toBe(true)
      key = run.stdout.trim()
    })
    const keys = ['shop']
    expect(created).toEqual(
      lineWith({ action: 'key-create', keys, count: 1, creator: '9007199254740993' }),
    )
    const targets = ['evil.example', 'sites.example/bad']
    const added = await actionOf(standalone, () => onFiles(`block add ${targets.join(' ')}`))
    expect(added).toEqual(lineWith({ action: 'block-add', targets, count: 2 }))
    const long = `many.example/${'x'.repeat(300)}`
    const hosts = Array.from({ length: 8 }, (_, at) => `h${at}.example`)
    await writeFile(pathOf('import'), [long, 'evil.example', ...hosts].join('\n'))
    const imported = await actionOf(standalone, () => onFiles(`block import ${pathOf('import')}`))
    const shown = [long.slice(0, 200), 'evil.example', ...hosts.slice(0, 3)]
    expect(imported).toEqual(lineWith({ action: 'block-import', targets: shown, count: 9 }))
    const removed = await actionOf(standalone, () => onFiles('block remove h0.example no.example'))
    expect(removed).toEqual(
      lineWith({ action: 'block-remove', targets: ['h0.example', 'no.example'], count: 1 }),
    )
    const revoked = await actionOf(standalone, () => onFiles('key revoke shop --operator=bob'))
    expect(revoked).toEqual(lineWith({ action: 'key-revoke', keys, count: 1, operator: 'bob' }))
    const log = JSON.stringify(standalone.log)
    expect(key).toMatch(/^curtail_/)
    expect(log).not.toContain(key)
    expect(log).not.toContain(hash('sha256', key))
  },
  TEST_MS_MAX,
)

test(
  'commands that read, or whose change fails, write no line',
  async () => {
    const before = actionsOf(standalone).length
    await onFiles('key list')
    await onFiles('block list')
    expect((await onFiles('key revoke unknown')).exitCode).toBe(1)
    expect((await onFiles('block add *.example')).exitCode).toBe(2)
    expect((await onFiles('key list --operator=')).stderr).toBe(
      'curtail: --operator must be 1 to 64 visible ASCII characters: it is ""\n',
    )
    await actionOf(standalone, () => onFiles('block remove none.example'))
    expect(actionsOf(standalone)).toHaveLength(before + 1)
  },
  TEST_MS_MAX,
)

/** Checks that a command has printed the line, and changed the list. */
async function expectPrinted(run: Run, host: string, cause: RegExp): Promise<void> {
  expect([run.exitCode, run.stdout]).toEqual([0, '1 entry added, 0 already in the list\n'])
  const [warning = '', line = '', ...rest] = run.stderr.split('\n')
  expect(warning).toMatch(cause)
  expect(warning).toMatch(/^curtail: .*; add this line to the audit log:$/)
  expect(rest).toEqual([''])
  const action = { action: 'block-add', targets: [host], count: 1, outcome: 'success' }
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
  const operator = 'ann'
  expect(JSON.parse(line)).toEqual({ time, ...action, operator, msg: 'operator action' })
  expect((await onFiles('block list')).stdout.split('\n')).toContain(host)
}

test(
  'if the admin API is unavailable or rejects the token, the command prints the line',
  async () => {
    const closed = 'http://127.0.0.1:1'
    await expectPrinted(
      await onFiles('block add unavailable.example', { ADMIN_URL: closed }),
      'unavailable.example',
      /cannot reach the admin API at http:\/\/127\.0\.0\.1:1 .*check ADMIN_URL/,
    )
    await expectPrinted(
      await onFiles('block add rejected.example', { ADMIN_TOKEN: 'another-token' }),
      'rejected.example',
      /POST \/admin\/actions returned 401: .*token of ADMIN_TOKEN/,
    )
  },
  TEST_MS_MAX,
)

test(
  'if the admin API does not respond, the command waits 2 s, then prints the line',
  async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const startedMs = performance.now()
    const run = await onFiles('block add slow.example', { ADMIN_URL: `http://127.0.0.1:${port}` })
    expect(performance.now() - startedMs).toBeLessThan(HANG_MS_MAX)
    silent.close()
    await expectPrinted(run, 'slow.example', /did not respond within 2 s; add this line/)
  },
  TEST_MS_MAX,
)

test(
  'a new key is printed before the change is reported',
  async () => {
    let printed = ''
    let printedBefore: string | undefined
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const env = { ...inherited, ...files(), ADMIN_URL: `http://127.0.0.1:${port}` }
    const args = roleArguments('key', 'create', 'printed')
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    silent.on('connection', (socket) => {
      socket.once('data', () => {
        printedBefore ??= printed
        socket.destroy()
      })
    })
    const [exitCode] = (await once(child, 'close')) as [number | null]
    silent.close()
    expect(printedBefore).toMatch(/^curtail_[\w-]{43}\n$/)
    expect([exitCode, printed]).toEqual([0, printedBefore])
  },
  TEST_MS_MAX,
)

const inKubernetes = (command: string) =>
  runCurtail(command.split(' '), {
    ...{ KUBECONFIG: pathOf('kubeconfig'), OPERATOR: 'ann' },
    ...(command.startsWith('key')
      ? { API_KEYS_SECRET: 'one' }
      : { BLOCKED_TARGETS_CONFIG_MAPS: 'one' }),
    ADMIN_URL: `http://127.0.0.1:${String(controller.ready['adminPort'])}`,
  })

test(
  'each change of objects is a line in the log of the controller, without a token',
  async () => {
    fake.store.create(SECRETS, { metadata: { name: 'one' } })
    fake.store.create(CONFIG_MAPS, { metadata: { name: 'one' } })
    const created = await actionOf(controller, async () => {
      expect(isQuiet(await inKubernetes('key create shop --creator=7'))).toBe(true)
    })
    const keys = ['shop']
    expect(created).toEqual(lineWith({ action: 'key-create', keys, count: 1, creator: '7' }))
    const added = await actionOf(controller, () => inKubernetes('block add evil.example'))
    const targets = ['evil.example']
    expect(added).toEqual(lineWith({ action: 'block-add', targets, count: 1 }))
    fake.reject = ({ method }) =>
      method === 'PUT' ? { status: 504, reason: 'Timeout' } : undefined
    const unknown = await actionOf(controller, async () => {
      expect((await inKubernetes('key revoke shop')).exitCode).toBe(1)
    })
    fake.reject = () => undefined
    expect(unknown).toEqual(lineWith({ action: 'key-revoke', keys, count: 1, outcome: 'unknown' }))
    expect(JSON.stringify(controller.log)).not.toMatch(/curtail_[\w-]{43}|sha256/)
  },
  TEST_MS_MAX,
)
