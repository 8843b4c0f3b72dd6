// `kubectl curtail`, the plugin bin/kubectl-curtail, with the real kubectl and a real API server,
// which has no nodes: `kubectl exec` is recorded here, and test/cluster runs it.
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { userInfo, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Role } from '../../../src/process/role.ts'
import { type KubeApiserver, startKubeApiserver } from '../../dependencies/kube-apiserver.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 120_000
const RUN_MS_MAX = 30_000
const plugin = fileURLToPath(new URL('../../../bin/kubectl-curtail', import.meta.url))
const EXEC_CODE = 7
const operator = `--operator=${userInfo().username}`

let server: KubeApiserver
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-kubectl-'))
  server = await startKubeApiserver((line) => process.stdout.write(`${line}\n`))
  for (const namespace of ['shop', 'two', 'none']) {
    await create('/api/v1/namespaces', { metadata: { name: namespace } })
  }
  for (const component of ['create', 'controller', 'ratelimit', 'edge'])
    await createDeployment('shop', 'shop', component)
  for (const release of ['a', 'b']) await createDeployment('two', release, 'create')
  await server.writeKubeconfig(join(folder, 'kubeconfig'), 'admin', 'shop')
  await symlink(plugin, join(folder, 'kubectl-curtail'))
  // Prints the arguments of exec, and the standard input with -i; runs everything else.
  const recorder = `#!/bin/sh
input=
for argument; do
  case $argument in
  exec) kind=exec ;;
  config) [ -z "\${CONFIG_FAILS-}" ] || exit 1 ;;
  -i) input=1 ;;
  --) break ;;
  esac
done
[ "\${kind-}" = exec ] || exec '${server.programs}/kubectl' "$@"
printf '%s\\n' "$@"
[ -z "$input" ] || cat
exit ${EXEC_CODE}
`
  await writeFile(join(folder, 'kubectl'), recorder)
  await chmod(join(folder, 'kubectl'), 0o755)
}, START_MS_MAX)

afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true })
})

const create = (path: string, body: object) =>
  server.as('admin').call({ method: 'POST', path, body })

function createDeployment(namespace: string, release: string, component: string) {
  const labels = {
    'app.kubernetes.io/part-of': 'curtail',
    'app.kubernetes.io/instance': release,
    'app.kubernetes.io/component': component,
  }
  const spec = { containers: [{ name: component, image: 'curtail' }] }
  return create(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
    metadata: { name: `${release}-curtail-${component}`, labels },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  })
}

const path = () => `${folder}:${process.env['PATH'] ?? ''}`

interface Run {
  readonly exitCode: number
  readonly lines: readonly string[]
  readonly stderr: string
}

interface RunOptions {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs `kubectl curtail ARGS`; the real kubectl finds the plugin in PATH. */
function run(args: readonly string[], { input = '', env: more = {} }: RunOptions = {}) {
  const env = { PATH: path(), HOME: folder, KUBECONFIG: join(folder, 'kubeconfig'), ...more }
  return new Promise<Run>((resolve, reject) => {
    const kubectl = join(server.programs, 'kubectl')
    const options = { env, timeout: RUN_MS_MAX }
    const child = execFile(kubectl, ['curtail', ...args], options, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : error.code
      if (typeof exitCode === 'number')
        resolve({ exitCode, lines: stdout.split('\n').slice(0, -1), stderr })
      else reject(new Error(`kubectl was killed, or did not start: ${stderr}`, { cause: error }))
    })
    child.stdin?.end(input)
  })
}

/** The arguments of kubectl that run a command in the pod of `component`. */
const execIn = (component: string, ...command: readonly string[]) => ({
  exitCode: EXEC_CODE,
  stderr: '',
  lines: [
    ...['exec', `deployment/shop-curtail-${component}`, '-c', component],
    ...['--', 'curtail', ...command],
  ],
})

test.each([
  ['link show a', execIn('create', 'link', 'show', 'a')],
  ['report list', execIn('create', 'report', 'list')],
  ['pool status --json', execIn('create', 'pool', 'status', '--json')],
  ['key list --operator=ann', execIn('controller', 'key', 'list', '--operator=ann')],
  ['limit top', execIn('ratelimit', 'limit', 'top')],
  ['link show -- -n', execIn('create', 'link', 'show', '--', '-n')],
  ['link delete -- -a', execIn('create', 'link', 'delete', operator, '--', '-a')],
  ['--release shop link show a', execIn('create', 'link', 'show', 'a')],
  ['--release=shop -- link delete a', execIn('create', 'link', 'delete', operator, 'a')],
  ['-- link show -- -n', execIn('create', 'link', 'show', '--', '-n')],
])('kubectl curtail %s runs in the pod that has its settings', async (line, expected) => {
  expect(await run(line.split(' '))).toEqual(expected)
})

test('kubectl curtail passes the standard input only to commands that read it', async () => {
  const { lines } = await run(['import', '-', '--format=csv'], { input: 'short_code\n' })
  expect(lines).toEqual([
    ...['exec', '-i', 'deployment/shop-curtail-create', '-c', 'create', '--', 'curtail'],
    ...['import', operator, '-', '--format=csv', 'short_code'],
  ])
  const list = await run(['link', 'disable', '--from-file=-'], { input: 'abc\n' })
  expect(list.lines).toEqual(expect.arrayContaining(['exec', '-i', '--from-file=-', 'abc']))
  expect((await run(['link', 'show', 'a'], { input: 'abc\n' })).lines).not.toContain('abc')
})

test(
  'kubectl curtail passes the user as the operator of each command that has one',
  async () => {
    const tested: string[] = []
    for (const name of ['block', 'import', 'key', 'limit', 'link', 'pool', 'report']) {
      const { role } = (await import(`../../../src/roles/${name}.ts`)) as { role: Role }
      for (const [command, { flags = {} }] of Object.entries(role.commands)) {
        const words = [name, command].filter((word) => word !== '')
        const { lines } = await run([...words, 'x'])
        const expected = 'operator' in flags ? [...words, operator, 'x'] : [...words, 'x']
        expect(lines.slice(lines.indexOf('curtail') + 1)).toEqual(expected)
        tested.push(words.join(' '))
      }
    }
    expect(tested).toContain('key create')
  },
  TEST_MS_MAX,
)

test.each([
  ['-n none link show a', 1, /^kubectl curtail: no release with .* create in the namespace none; /],
  ['-n two link show a', 2, /: several releases in the namespace two: a, b; choose .*--release=/],
  ['--release=b key list', 1, /: no release b with a Deployment of the component controller in th/],
  ['link show a -n', 2, /^kubectl curtail: -n requires a value\n$/],
  ['--release= link show a', 2, /^kubectl curtail: --release requires a value\n$/],
  ['-n  link show a', 2, /^kubectl curtail: -n requires a value\n$/],
  ['--context=other link show a', 1, /context was not found for specified context: other/],
])('kubectl curtail %s exits with %i and the cause', async (line, exitCode, expected) => {
  const { stderr, lines, ...result } = await run(line.split(' '))
  expect([result.exitCode, lines]).toEqual([exitCode, []])
  expect(stderr).toMatch(expected)
})

test.each(['link show a -n two --release=b', '-ntwo --release b -- link show a'])(
  'kubectl curtail %s selects the release and the namespace',
  async (line) => {
    const { lines } = await run(line.split(' '))
    const pod = ['exec', 'deployment/b-curtail-create', '-c', 'create']
    expect(lines).toEqual(['--namespace=two', ...pod, '--', 'curtail', 'link', 'show', 'a'])
  },
)

test('kubectl curtail passes arguments with spaces and quotes, and empty ones', async () => {
  const args = ['link', 'delete', 'a  b', '', `it's "$HOME" \\`, '*', '--json']
  const [role, verb, ...rest] = args
  const expected = execIn('create', `${role}`, `${verb}`, operator, ...rest)
  expect(await run(args)).toEqual(expected)
})

test('kubectl curtail does not require that kubectl has a context', async () => {
  const env = { CONFIG_FAILS: '1' }
  expect(await run(['link', 'show', 'a'], { env })).toEqual(execIn('create', 'link', 'show', 'a'))
  const { exitCode, stderr } = await run(['--release=b', 'link', 'show', 'a'], { env })
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/ in the namespace of the current context; use -n /)
})

test.each(['Ann Lee', 'Zoë', 'a'.repeat(65), ''])(
  'kubectl curtail does not pass the invalid operator %j',
  async (name) => {
    const users = await mkdtemp(join(folder, 'users-'))
    await writeFile(join(users, 'id'), `#!/bin/sh\necho '${name}'\n`, { mode: 0o755 })
    const env = { PATH: `${users}:${path()}` }
    const expected = execIn('create', 'link', 'delete', 'a')
    expect(await run(['link', 'delete', 'a'], { env })).toEqual(expected)
  },
)

test('kubectl curtail without a role prints its usage', async () => {
  const { exitCode, lines } = await run([])
  expect([exitCode, lines[0]]).toEqual([0, expect.stringMatching(/^Usage: kubectl curtail /)])
})
