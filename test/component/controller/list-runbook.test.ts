// The commands of the runbook CurtailListNotApplied on a real API server: they store the corrected
// lists, and keep what Helm manages.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { KubeApi } from '../../../src/kube/api.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'
import { type ActionSink, startActionSink } from '../../kit/processes/action-sink.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { scriptsOf } from '../../kit/runbook-commands.ts'

const runShell = promisify(execFile)
const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 120_000
const COMMAND_MS_MAX = 30_000
const page = new URL('../../../docs/runbooks/curtaillistnotapplied.md', import.meta.url)
const CORE = '/api/v1/namespaces/n'
const labels = { 'app.kubernetes.io/managed-by': 'Helm', 'curtail.dev/api-keys': 'true' }
const KEY = `{"name":"a","creator_id":"1","hash":"sha256:${'0'.repeat(64)}"}\n`

let server: KubeApiserver
let admin: KubeApi
let folder: string
let sink: ActionSink
let commands: readonly string[]

beforeAll(async () => {
  sink = await startActionSink()
  folder = await mkdtemp(join(tmpdir(), 'curtail-runbook-'))
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  admin = server.as('admin')
  const create = (path: string, body: object) => admin.call({ method: 'POST', path, body })
  await create('/api/v1/namespaces', { metadata: { name: 'n' } })
  await create(`${CORE}/configmaps`, {
    metadata: { name: 'shop-curtail-blocked-targets', labels },
    data: { 'blocked-targets.txt': 'evil.example\n*.other.example\n', other: 'kept' },
  })
  const keys = Buffer.from(`${KEY}damaged\n`).toString('base64')
  await create(`${CORE}/secrets`, {
    metadata: { name: 'shop-curtail-api-keys', labels },
    data: { 'api-keys.ndjson': keys },
  })
  await server.writeKubeconfig(join(folder, 'kubeconfig'), 'admin', 'n')
  commands = scriptsOf({ name: '', text: await readFile(page, 'utf8') })
}, START_MS_MAX)

afterAll(async () => {
  sink.close()
  await server.stop()
  await rm(folder, { recursive: true })
})

/** Runs each command of the page that contains `words`; resolves to their number. */
async function runCommands(words: string, kubeconfig = 'kubeconfig'): Promise<number> {
  const selected = commands.filter((line) => line.includes(words))
  for (const line of selected) {
    const PATH = `${server.programs}:${process.env['PATH'] ?? ''}`
    const env = {
      PATH,
      HOME: folder,
      KUBECONFIG: join(folder, kubeconfig),
      NS: 'n',
      R: 'shop-curtail',
    }
    await runShell('sh', ['-c', line], { cwd: folder, env, timeout: COMMAND_MS_MAX })
  }
  return selected.length
}

const objectAt = async (path: string) =>
  (await admin.call({ method: 'GET', path: `${CORE}/${path}` })) as {
    metadata: { labels: object; annotations?: object }
    data: Record<string, string>
  }

test(
  'if the lists cannot be read, the commands store nothing',
  async () => {
    const read = () =>
      Promise.all([
        objectAt('configmaps/shop-curtail-blocked-targets'),
        objectAt('secrets/shop-curtail-api-keys'),
      ])
    const before = await read()
    for (const words of [' get configmap ', ' get secret ']) {
      await expect(runCommands(words, 'missing')).rejects.toThrow()
    }
    for (const words of [' create configmap ', ' create secret ']) {
      await expect(runCommands(words)).rejects.toThrow('no objects passed to apply')
    }
    expect(await read()).toEqual(before)
  },
  TEST_MS_MAX,
)

test(
  'the corrected files replace the lists, and nothing else',
  async () => {
    expect(await runCommands(' get ')).toBe(2)
    const contentOf = (name: string) => readFile(join(folder, name), 'utf8')
    expect(await contentOf('blocked-targets.txt')).toBe('evil.example\n*.other.example\n')
    expect(await contentOf('api-keys.ndjson')).toBe(`${KEY}damaged\n`)
    await writeFile(join(folder, 'blocked-targets.txt'), 'evil.example\n')
    await writeFile(join(folder, 'api-keys.ndjson'), KEY)
    expect(await contentOf('blocked-targets.orig')).toBe('evil.example\n*.other.example\n')
    expect(await contentOf('api-keys.orig')).toBe(`${KEY}damaged\n`)
    expect(await runCommands(' apply ')).toBe(2)
    const configMap = await objectAt('configmaps/shop-curtail-blocked-targets')
    expect(configMap.data).toEqual({ 'blocked-targets.txt': 'evil.example\n', other: 'kept' })
    const secret = await objectAt('secrets/shop-curtail-api-keys')
    const listed = Buffer.from(secret.data['api-keys.ndjson'] ?? '', 'base64').toString()
    expect(listed).toBe(KEY)
    for (const { metadata } of [configMap, secret]) {
      expect(metadata.labels).toEqual(labels)
      expect(metadata.annotations).toBeUndefined() // a copy of the list would be too long
    }
  },
  TEST_MS_MAX,
)

test(
  'after a later command, the runbook stores a list as before',
  async () => {
    const run = await runCurtail(['block', 'add', 'third.example'], {
      ...{ KUBECONFIG: join(folder, 'kubeconfig'), ADMIN_URL: sink.url },
      BLOCKED_TARGETS_CONFIG_MAPS: 'shop-curtail-blocked-targets',
    })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    await writeFile(join(folder, 'blocked-targets.txt'), 'fourth.example\n')
    await runCommands(' apply ')
    const { data } = await objectAt('configmaps/shop-curtail-blocked-targets')
    expect(data['blocked-targets.txt']).toBe('fourth.example\n')
  },
  TEST_MS_MAX,
)
