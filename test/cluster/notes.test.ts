// The commands of README.md and of the chart's notes, run as printed and in order: each succeeds
// and has the described effect.
import { beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { helm, kubectl, mustRun, pathWithHelm, tryRun } from './cluster.ts'
import { installByReadme } from './install-by-readme.ts'
import {
  ensureRelease,
  INSTALL_MS_MAX,
  RELEASE,
  uninstall,
  uninstallDefinitions,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
/** A Lease that was not released must expire first. */
const CONDITION_MS_MAX = 60_000
/** Printed after the output of each command, with its exit code. */
const MARK = '--- exit code'

/** The stdout of each command of README.md. */
let installed: ReadonlyMap<string, string>
/** The command lines of the notes, in order. */
let commands: readonly string[]
let notes: string

beforeAll(async () => {
  await ensureRelease()
  await uninstall()
  await uninstallDefinitions()
  installed = await installByReadme()
  notes = await helm(4, 'get', 'notes', RELEASE, '--namespace', RELEASE)
  const lines = notes.split('\n').map((line) => /^ {2}(\S.*)$/.exec(line)?.[1] ?? '')
  commands = lines.filter((line) => /^(kubectl|helm|curl|[A-Z_]+=)/.test(line))
}, 2 * INSTALL_MS_MAX)

test('the commands of README.md install both charts and list the pools', () => {
  const outputs = [...installed.values()]
  expect(outputs).toHaveLength(3)
  for (const [i, name] of ['curtail-crds', RELEASE].entries()) {
    expect(outputs[i]).toMatch(new RegExp(`^NAME: ${name}\n[^]*STATUS: deployed`))
  }
})

test(
  'every command of the notes succeeds as printed; the first one waits for the pods',
  async () => {
    const outputs = await runInOrder(commands)
    const outputOf = (text: string) =>
      [...outputs].find(([command]) => command.includes(text))?.[1] ?? `no command has ${text}`
    expect(outputOf('wait deployment')).toContain('condition met')
    expect(outputOf('helm test')).toContain('Succeeded')
    expect(outputOf('curl -si')).toMatch(/^HTTP\/1\.1 302 .*location: https:\/\/example\.com\//is)
    expect(JSON.parse(outputOf('/admin/pools'))).toContainEqual(
      expect.objectContaining({ pool: 'default', target: 200_000 }),
    )
    expect(outputOf('-c wait-for-schema')).toContain('schema present')
    expect(outputOf('component=migrate')).toContain('migrated')
    const getPools = commands.find((command) => command.endsWith('get codepools')) ?? 'false'
    // A pool has no conditions before a controller leads and reconciles it.
    const isReady = async () =>
      /shop-curtail-default +\d+ +200000 .*True/.test(await mustRun('sh', ['-c', getPools]))
    await waitFor(getPools, isReady, CONDITION_MS_MAX)
    expect(outputOf('describe codepools')).toContain('shop-curtail-default')
    expect(outputOf('describe pods')).toMatch(/^Name: +shop-curtail-create-/m)
    expect(outputOf('component=controller')).toContain('"role":"controller"')
    expect(JSON.parse(outputOf('/readyz'))).toMatchObject({ status: 'ready' })
    expect(outputs.size).toBeGreaterThan(12)
  },
  TEST_MS_MAX,
)

/** Runs the commands in one shell; resolves to the output of each. Fails unless all succeed. */
async function runInOrder(lines: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const script = lines.flatMap((line) => [
    // The port forwards log each connection between the outputs of the other commands.
    line.replace(/ &$/, ' > /dev/null 2>&1 &'),
    `printf '\\n${MARK} %s\\n' $?`,
  ])
  const setup = [`export PATH=${await pathWithHelm()}`, `trap 'kill $(jobs -p)' EXIT`]
  const { stdout, stderr } = await tryRun('bash', ['-c', [...setup, ...script].join('\n')])
  const found = stdout.split(new RegExp(`\n${MARK} (\\d+)\n`))
  const results = lines.map((line, at) => [line, found[2 * at] ?? '', found[2 * at + 1]] as const)
  const failed = results.filter(([, , exitCode]) => exitCode !== '0')
  expect([failed, failed.length === 0 ? '' : stderr]).toEqual([[], ''])
  return new Map(results.map(([line, output]) => [line, output]))
}

test('the containers that start after their dependencies have logged no warning', async () => {
  // Not the controller: it logs a warning when it retries a write to the API server.
  const containers = { create: 'create', redirect: 'redirect' }
  for (const [component, name] of Object.entries({ ...containers, pools: 'refill' })) {
    const args = ['-n', RELEASE, '--container', name, '--prefix', '--tail=-1']
    const log = await kubectl('logs', ...args, '-l', `app.kubernetes.io/component=${component}`)
    const lines = log.split('\n')
    expect(lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line))).toEqual([])
    if (name !== 'refill') expect(log).toContain('"msg":"ready"')
  }
})

test('the notes warn of values for evaluation only and list what an uninstall keeps', () => {
  expect(notes).toContain('baseUrl is http://localhost:8080')
  expect(notes).toContain('cassandra.mode is bundled')
  expect(notes).toContain('the Secret shop-curtail-code-secret')
  expect(notes).toContain('data-shop-curtail-cassandra-*')
})
