// The `ratelimit` role with rules that it must reject: of another domain, or with a fault. The last
// valid set survives a crash; without one, the process is not ready and reports the cause.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import { limiterEnvironment } from '../../stack/limiter-environment.ts'
import { type RoleProcess, startRole } from '../../kit/processes/role-process.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const rulesOf = (domain: string, limit: number) =>
  `domain: ${domain}\ndescriptors:\n` +
  `  - {key: k, rate_limit: {unit: hour, requests_per_unit: ${String(limit)}}}\n`
/** The settings that the chart sets. */
const chartSettings = {
  REQUIRED_DOMAIN: 'edge',
  FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true',
}

let root: string
const started: RoleProcess[] = []
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'curtail-rules-'))
  await mkdir(join(root, 'config'))
})
afterEach(async () => {
  for (const role of started.splice(0)) await role.stop()
  await rm(root, { recursive: true })
})

const writeRules = (yaml: string) => writeFile(join(root, 'config', 'rules.yaml'), yaml)

async function start(
  more: Readonly<Record<string, string>> = chartSettings,
  nodeOptions?: readonly string[],
) {
  const env = { ...limiterEnvironment(root, await freePort()), ...more } // no Redis is needed
  const role = await startRole({ role: 'ratelimit', env, ...(nodeOptions && { nodeOptions }) })
  started.push(role)
  const urlOf = (port: string) => `http://127.0.0.1:${String(role.ready[port])}`
  return {
    role,
    readyz: async () => {
      const response = await fetch(`${urlOf('adminPort')}/readyz`)
      const { dependencies } = (await response.json()) as { dependencies: { rules: string } }
      return [response.status, dependencies.rules]
    },
    health: async () => (await fetch(`${urlOf('port')}/healthcheck`)).status,
    config: async () => (await fetch(`${urlOf('debugPort')}/rlconfig`)).text(),
    /** The limit that applies to a call in the domain `edge`, or `none`. */
    limit: async () => {
      const descriptors = [{ entries: [{ key: 'k', value: 'v' }] }]
      const body = JSON.stringify({ domain: 'edge', descriptors })
      const response = await fetch(`${urlOf('port')}/json`, { method: 'POST', body })
      const { statuses } = (await response.json()) as {
        statuses: { currentLimit?: { requestsPerUnit: number } }[]
      }
      return statuses[0]?.currentLimit?.requestsPerUnit ?? 'none'
    },
  }
}

test.each([
  [
    'rules of another domain',
    rulesOf('shop', 5),
    "no file has rules for the required domain 'edge'",
  ],
  ['a fault', 'domain: edge\ndescriptors: [{ keys: k }]\n', 'rules.yaml:2'],
])(
  'a limiter that starts with %s reports the cause, and is ready once the rules are valid',
  async (_, yaml, report) => {
    await writeRules(yaml)
    const { role, readyz, health, config, limit } = await start()
    expect([await readyz(), await health()]).toEqual([[503, 'down'], 500])
    expect(await config()).toContain(report)
    await waitFor('the report', () => JSON.stringify(role.log).includes(report))
    await writeRules(rulesOf('edge', 5))
    await waitFor('readiness', async () => (await readyz())[0] === 200)
    expect([await readyz(), await health(), await limit()]).toEqual([[200, 'up'], 200, 5])
  },
  TEST_MS_MAX,
)

test(
  'the limiter rejects rules of another domain; its last valid rules survive a crash',
  async () => {
    const env = { ...chartSettings, RULES_COPY: join(root, 'copy.json') }
    await writeRules(rulesOf('edge', 5))
    const first = await start(env)
    expect([await first.readyz(), await first.limit()]).toEqual([[200, 'up'], 5])
    await writeRules(rulesOf('shop', 7))
    await waitFor('the rejection', async () => (await first.readyz())[1] === 'down')
    expect([await first.readyz(), await first.limit()]).toEqual([[200, 'down'], 5])
    first.role.child.kill('SIGKILL')
    await withinDeadline('the crash', first.role.exited)

    const second = await start(env)
    expect([await second.readyz(), await second.health()]).toEqual([[200, 'down'], 200])
    expect(await second.limit()).toBe(5)
    const logged = second.role.log.map(({ msg }) => msg)
    expect(logged).toContain('last valid rules loaded: the rule files cannot be used')
    await writeRules(rulesOf('edge', 9))
    await waitFor('the new rules', async () => (await second.limit()) === 9)
    await waitFor('the rules to be up', async () => (await second.readyz())[1] === 'up')
    expect(await readFile(join(root, 'copy.json'), 'utf8')).toContain('requests_per_unit: 9')
  },
  TEST_MS_MAX,
)

test.each([
  ['truncated', '[{"name":"rules.yaml","te'],
  ['of another domain', JSON.stringify([{ name: 'r', text: rulesOf('shop', 5) }])],
])(
  'the limiter does not load a copy that is %s',
  async (_, copy) => {
    await writeFile(join(root, 'copy.json'), copy)
    await writeRules('bad')
    const env = { ...chartSettings, RULES_COPY: join(root, 'copy.json') }
    expect(await (await start(env)).readyz()).toEqual([503, 'down'])
  },
  TEST_MS_MAX,
)

test(
  'the start fails on an invalid first set with the settings of the reference',
  async () => {
    await writeRules(rulesOf('shop', 5))
    await expect(start({ REQUIRED_DOMAIN: 'edge' })).rejects.toThrow(/required domain 'edge'/)
  },
  TEST_MS_MAX,
)

test(
  'rules that do not fit into the heap are rejected, and the previous ones stay active',
  async () => {
    await writeRules(rulesOf('edge', 5))
    const heap = ['--max-old-space-size=64', '--max-semi-space-size=4']
    const { role, limit } = await start(chartSettings, heap)
    const flat = Array.from({ length: 45_000 }, (_, i) => `- {key: k${i}}`).join('\n')
    await writeFile(join(root, 'config', 'more.yaml'), `domain: more\ndescriptors:\n${flat}\n`)
    await writeRules(`domain: edge\ndescriptors:\n${flat}\n`)
    const isRejected = () =>
      role.log.some(({ faults }) => String(faults).includes('the rules need about 69 MiB of heap'))
    await waitFor('the rejection', isRejected)
    expect(await limit()).toBe(5)
  },
  TEST_MS_MAX,
)
