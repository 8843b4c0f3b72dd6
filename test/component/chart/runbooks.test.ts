// The commands of the runbooks and of the operations manual are valid: the programs accept their
// arguments and flags, the chart renders the objects that they name, and every metric exists.
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from '@jest/globals'
import { edgeMetrics, otherMetrics } from '../../../charts/dashboards/series.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { cassandraFiles, findCassandraJars } from '../../dependencies/cassandra-jars.ts'
import { findHelm } from '../../dependencies/helm.ts'
import { findJava } from '../../dependencies/java.ts'
import { findKubernetes } from '../../dependencies/kubernetes.ts'
import { commandsOf, expressionsOf, type Page } from '../../kit/runbook-commands.ts'
import { containersOf, type KubeObject, podsOf, renderChart } from '../../kit/chart/chart-render.ts'
import { roleArguments } from '../../kit/processes/role-process.ts'

const run = promisify(execFile)

const FETCH_MS_MAX = 1_800_000
const TEST_MS_MAX = 120_000
const docs = new URL('../../../docs/', import.meta.url)
const runbooks = new URL('runbooks/', docs)

let pages: readonly Page[]
let kubectl: string
/** The objects of the chart in the pool modes `controller` and `cron`. */
let objects: readonly KubeObject[]

beforeAll(async () => {
  const names = (await readdir(runbooks)).map((name) => new URL(name, runbooks))
  const all = [...names, new URL('operations.md', docs)]
  pages = await Promise.all(
    all.map(async (url) => {
      return { name: url.pathname.replace(/^.*\//, ''), text: await readFile(url, 'utf8') }
    }),
  )
  const log = (line: string) => void process.stderr.write(`${line}\n`)
  kubectl = `${await findKubernetes(log)}/kubectl`
  const modes = ['controller', 'cron'].map((mode) => {
    const values = { pools: { mode }, loadTest: { enabled: true }, edge: { trustedHops: 1 } }
    return renderChart({ major: 4, values })
  })
  objects = (await Promise.all(modes)).flat()
}, FETCH_MS_MAX)

/** The distinct commands of all pages with this program. */
function callsOf(program: string): readonly (readonly string[])[] {
  const found = pages.flatMap(commandsOf).filter(([name]) => name === program)
  expect(found.length).toBeGreaterThan(0)
  return [...new Map(found.map((words) => [words.join(' '), words])).values()]
}

/** The errors of calls with an additional `--help`, which programs read after the other flags. */
async function faultsOf(
  calls: readonly (readonly string[])[],
  commandLine: (words: readonly string[]) => readonly string[],
): Promise<string[]> {
  const faults = await Promise.all(
    calls.map(async (words) => {
      const [program = '', ...args] = commandLine(words)
      return run(program, args, { timeout: TEST_MS_MAX }).then(
        () => [],
        (error: unknown) => [`${words.join(' ')}: ${(error as { stderr: string }).stderr}`],
      )
    }),
  )
  return faults.flat()
}

test('the pages contain only commands of these programs, and expressions', () => {
  const programs = new Set(pages.flatMap(commandsOf).map(([program]) => program))
  const tested = ['cd', 'curl', 'export', 'helm', 'k6/k6', 'kubectl', 'nodetool', 'npx']
  expect([...programs].sort()).toEqual([...tested, 'openssl', 'redis-cli', 'umask'].sort())
  expect(pages.flatMap(expressionsOf).length).toBeGreaterThan(20)
})

test('the expressions contain only metrics of the catalogue', async () => {
  const own = (await createMetrics().registry.getMetricsAsJSON()).map(({ name }) => name)
  const theirs = Object.values(edgeMetrics).map((name) => `envoy_${name}`)
  const existing = new Set([...own, ...theirs, ...Object.values(otherMetrics)])
  const unknown = pages.flatMap((page) =>
    expressionsOf(page).flatMap((expression) => {
      const names =
        expression.replaceAll(/\bby \([^)]*\)/g, '').match(/\b[a-z]+_[a-z_]+\b(?=[{[),]|$)/g) ?? []
      const missing = names.filter(
        (name) => !existing.has(name.replace(/_(bucket|count|sum)$/, '')),
      )
      return missing.map((name) => `${page.name}: ${name}`)
    }),
  )
  expect(unknown).toEqual([])
})

test(
  'kubectl and helm accept every argument and flag',
  async () => {
    const helm = await findHelm(4)
    const before = (words: readonly string[]) => {
      const at = words.indexOf('--')
      return at < 0 ? words : words.slice(0, at)
    }
    const faults = await faultsOf(callsOf('kubectl'), (words) => {
      return [kubectl, ...before(words).slice(1), '--help']
    })
    faults.push(...(await faultsOf(callsOf('helm'), ([, ...rest]) => [helm, ...rest, '--help'])))
    expect(faults).toEqual([])
    const wrong = [['kubectl', 'get', 'pods', '--wrong']]
    expect(await faultsOf(wrong, ([, ...rest]) => [kubectl, ...rest, '--help'])).toHaveLength(1)
  },
  TEST_MS_MAX,
)

/** Commands with which kubectl takes over fields of Helm, whose next upgrade would conflict. */
const owning = /^(annotate|apply|autoscale|edit|label|patch|replace|scale|set)$/
/** Commands that change what Helm does not manage: a volume's size, an autoscaler's number. */
const unmanaged = / (edit pvc data-POD|scale deploy\/shop-curtail-redirect --replicas=1)$/
const isOwning = (words: readonly string[]) => {
  const verb = words[1] === '-n' ? words[3] : words[1]
  const line = words.join(' ')
  const isCreated = / apply (.* )?-f -$/.test(line) // the output of `create secret|configmap`
  return owning.test(verb ?? '') && !isCreated && !unmanaged.test(line)
}

test('the kubectl commands take over no field of Helm', () => {
  expect(callsOf('kubectl').filter(isOwning)).toEqual([])
  const scale = ['kubectl', '-n', 'store', 'scale', 'deploy/shop-curtail-edge', '--replicas=4']
  expect(isOwning(scale)).toBe(true)
})

/** Commands that read one of several pods, need a certain pod, or set a fixed number of pods. */
const forOneSize = / logs (deploy|statefulset)\/|cassandra-\d|[rR]eplicas=\d/

test('the kubectl and helm commands suit any number of pods', () => {
  const lines = [...callsOf('kubectl'), ...callsOf('helm')].map((words) => words.join(' '))
  expect(lines.filter((line) => forOneSize.test(line) && !unmanaged.test(line))).toEqual([])
})

/**
 * The forms in which kubectl commands name objects, and whether the chart renders such an object.
 */
const objectForms: readonly (readonly [RegExp, (name: string) => boolean])[] = [
  [/ deploy\/(shop-curtail-[\w-]+)/, (name) => has('Deployment', name)],
  [/ statefulset\/(shop-curtail-[\w-]+)/, (name) => has('StatefulSet', name)],
  [/ exec (shop-curtail-[\w-]+)-0 /, (name) => has('StatefulSet', name)],
  [/=cronjob\/(shop-curtail-[\w-]+)/, (name) => has('CronJob', name)],
  [
    /component=([\w-]+)/,
    (name) => podsOf(objects).some(({ labels }) => labels['app.kubernetes.io/component'] === name),
  ],
  [
    / -c (\w+)/,
    (name) => podsOf(objects).some((pod) => containersOf(pod).some((one) => one.name === name)),
  ],
]

function has(kind: string, name: string): boolean {
  return objects.some((one) => one.kind === kind && one.metadata.name === name)
}

test('the chart renders every object, component and container of the kubectl commands', () => {
  const lines = callsOf('kubectl').map((words) => words.join(' '))
  for (const [form, exists] of objectForms) {
    const names = lines.flatMap((line) => form.exec(line)?.[1] ?? [])
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter((name) => !exists(name))).toEqual([])
  }
})

test(
  'the commands of Curtail have the actions of the runbooks',
  async () => {
    const calls = callsOf('npx')
    expect(calls.length).toBeGreaterThan(0)
    for (const words of calls) {
      const [role = '', action = ''] = words.slice(2)
      expect(words.slice(0, 2)).toEqual(['npx', 'curtail'])
      const args = roleArguments(role, '--help')
      const { stdout } = await run(process.execPath, args, { timeout: TEST_MS_MAX })
      if (role === 'link') expect(stdout).toMatch(new RegExp(`\\b${action}\\b`))
      else expect(stdout).toContain(`Usage: curtail ${role}`)
    }
    expect(callsOf('curl').map((words) => words.join(' '))).toEqual([
      'curl -s localhost:19090/readyz',
    ])
  },
  TEST_MS_MAX,
)

test(
  'nodetool and redis-cli have the commands of the runbooks',
  async () => {
    const { path } = await findJava()
    const classPath = await findCassandraJars()
    // Like bin/nodetool, with its history file in a temporary folder.
    const flags = [`@${cassandraFiles}/jvm.options`, `-Duser.home=${tmpdir()}`]
    const tool = [...flags, '-cp', classPath, 'org.apache.cassandra.tools.NodeTool', 'help']
    for (const words of callsOf('nodetool')) {
      const { stdout } = await run(path, [...tool, words[1] ?? ''], { timeout: TEST_MS_MAX })
      expect(stdout).toContain(`nodetool ${words[1] ?? ''} -`)
      for (const flag of words.filter((word) => word.startsWith('-'))) {
        expect(stdout).toMatch(new RegExp(`(^|\\s)${flag}[\\s,]`))
      }
    }
    // Without it, nodetool cannot connect to the bundled Cassandra.
    const jvmOptions = new URL('../charts/curtail/files/cassandra/jvm.options', docs)
    expect(await readFile(jvmOptions, 'utf8')).toContain('-Dcassandra.jmx.local.port=7199\n')
    expect(callsOf('redis-cli').map(([, action]) => action)).toEqual([
      ...['FLUSHALL', 'ping', 'SLOWLOG', 'INFO'],
    ])
  },
  TEST_MS_MAX,
)
