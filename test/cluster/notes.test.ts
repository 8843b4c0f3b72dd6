// The commands of README.md and of the chart's notes, run as printed and in order: each succeeds
// and has the described effect. Only the placeholders POD and CODE are filled in.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../kit/wait-for.ts'
import { helm, pathWithHelm, tryRun } from './cluster.ts'
import { createPortForwards } from './port-forward.ts'
import { installByReadme } from './install-by-readme.ts'
import {
  ensureRelease,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  uninstall,
  uninstallDefinitions,
} from './release.ts'

const TEST_MS_MAX = 8 * 60_000
/** A Lease that was not released must expire first. */
const CONDITION_MS_MAX = 60_000

/** The stdout of each command of README.md. */
let installed: ReadonlyMap<string, string>
/** The command lines of the notes, in order. */
let commands: readonly string[]
let notes: string
const portForwards = createPortForwards()

beforeAll(async () => {
  await ensureRelease()
  await uninstall()
  await uninstallDefinitions()
  installed = await installByReadme()
  notes = await helm(4, 'get', 'notes', RELEASE, '--namespace', RELEASE)
  const lines = notes.split('\n').map((line) => /^ {2}(\S.*)$/.exec(line)?.[1] ?? '')
  commands = lines
    .map((line) => line.replace(/ +#.*$/, ''))
    .filter((line) => /^(kubectl|helm|curl|ADMIN_TOKEN=)/.test(line))
}, 2 * INSTALL_MS_MAX)

afterAll(() => portForwards.stop())

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
    const path = await pathWithHelm()
    const [pod = ''] = await podsOf('create')
    const outputs = new Map<string, string>()
    let code = ''
    let before = ''
    for (const command of commands) {
      if (command.startsWith('ADMIN_TOKEN=')) before = `${command}\n`
      else if (command.endsWith(' &')) await portForwards.start(command)
      else {
        const filled = command.replace(/\bPOD\b/, pod).replace(/\bCODE\b/, code)
        const script = `PATH=${path}\n${before}${filled}`
        const run = async () => {
          const { code: exitCode, stdout, stderr } = await tryRun('sh', ['-ec', script])
          expect([command, exitCode, stderr]).toEqual([command, 0, expect.any(String)])
          outputs.set(command, stdout)
          return stdout
        }
        // A pool has no conditions before a controller leads and reconciles it.
        const isReady = async () => (await run()).includes(' True')
        if (command.includes('codepools')) await waitFor(command, isReady, CONDITION_MS_MAX)
        else code = /"short_url":"[^"]*\/(\w+)"/.exec(await run())?.[1] ?? code
      }
    }
    const outputOf = (text: string) =>
      [...outputs].find(([command]) => command.includes(text))?.[1] ?? `no command has ${text}`
    expect(outputOf('wait deployment')).toContain('condition met')
    expect(outputOf('helm test')).toContain('Succeeded')
    expect(outputOf('--json')).toContain('"short_url":"http://localhost:8080/')
    expect(outputOf('curl -si')).toMatch(/^HTTP\/1\.1 302 .*location: https:\/\/example\.com\//is)
    expect(JSON.parse(outputOf('/admin/pools'))).toContainEqual(
      expect.objectContaining({ pool: 'default', target: 200_000 }),
    )
    expect(outputOf('-c wait-for-schema')).toContain('schema present')
    expect(outputOf('component=migrate')).toContain('migrated')
    expect(outputOf('get codepools')).toMatch(/shop-curtail-default +\d+ +200000 .*True/)
    expect(outputOf('describe codepools')).toContain('LevelSufficient')
    expect(outputOf('component=controller')).toContain('"role":"controller"')
    expect(JSON.parse(outputOf('/readyz'))).toMatchObject({ status: 'ready' })
    expect(outputs.size).toBeGreaterThan(12)
  },
  TEST_MS_MAX,
)

test('the notes warn of values for evaluation only and list what an uninstall keeps', () => {
  expect(notes).toContain('baseUrl is http://localhost:8080')
  expect(notes).toContain('cassandra.mode is bundled')
  expect(notes).toContain('the Secret shop-curtail-code-secret')
  expect(notes).toContain('data-shop-curtail-cassandra-*')
})
