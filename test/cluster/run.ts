// `npm run test:cluster [-- PATTERN...]`: brings the test cluster up, loads the images, runs the
// tests of test/cluster in its network, and takes it down in every case. The last line is
// `N passed, N failed`. With `--stay` it runs no tests and says how to use the cluster.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Cluster, startCluster } from '../../k8s/cluster/start-cluster.ts'
import { buildImage } from '../../k8s/image/build.ts'
import { helmMajors, findHelm } from '../parts/helm.ts'
import { buildServerImages } from '../parts/images.ts'
import { findNodePackages } from '../parts/kubernetes-packages.ts'
import { findKubernetes } from '../parts/kubernetes.ts'
import { findPrometheus } from '../parts/prometheus.ts'

const TESTS_MS_MAX = 60 * 60_000
/** Runs by its name alone: some twenty minutes. */
const LONG = ['--testPathIgnorePatterns', 'incidents']

const begunMs = performance.now()

function say(line: string): void {
  const seconds = ((performance.now() - begunMs) / 1000).toFixed(0)
  process.stdout.write(`[${seconds.padStart(4)} s] ${line}\n`)
}

/** Everything is ended by this, whoever asks for it. */
const ending = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    ending.abort(new Error(`ended by ${signal}`))
  })
}

async function buildImages(folder: string): Promise<readonly string[]> {
  const ours = join(folder, 'test.tar')
  await buildImage({ names: ['localhost/curtail:test'], path: ours })
  const next = join(folder, 'next.tar')
  await buildImage({ names: ['localhost/curtail:next'], path: next, rewrite: addSchemaStep })
  const bad = join(folder, 'bad.tar')
  await buildImage({ names: ['localhost/curtail:bad'], path: bad, rewrite: addDefect })
  return [ours, next, bad, ...(await buildServerImages(folder))]
}

/** The release after this one has one more step of the schema. */
function addSchemaStep(text: string, place: string): string {
  if (place !== 'src/stores/cassandra/schema.ts') return text
  const at = text.indexOf('\n]\n', text.indexOf('export const migrations'))
  if (at < 0) throw new Error(`${place} has changed: where does its list end?`)
  const alter = 'ALTER TABLE KEYSPACE.links ADD IF NOT EXISTS of_next_release text'
  const step = `{ version: 1000, about: 'a test', statements: ['${alter}'] },`
  return `${text.slice(0, at)}\n  ${step}${text.slice(at)}`
}

/** Where the bad release throws: what it is asked comes to nothing, though its pods are ready. */
const defects: Readonly<Record<string, string>> = {
  'src/create/create-link.ts': 'const deadlineMs = deps.monotonicMs() + CREATE_MS_MAX',
  'src/resolve/read-tiers.ts': 'let seen: CacheAnswer | undefined',
}

function addDefect(text: string, place: string): string {
  const before = defects[place]
  if (before === undefined) return text
  if (!text.includes(before)) throw new Error(`${place} has changed: where can it throw?`)
  return text.replace(before, `if (Date.now() > 0) throw new Error('a defect')\n${before}`)
}

/** What tests and people find the cluster by. */
function environmentOf(cluster: Cluster, programs: string): NodeJS.ProcessEnv {
  const folders = [programs, dirname(process.execPath), process.env['PATH'] ?? '', '/usr/sbin']
  return {
    ...process.env,
    PATH: folders.join(':'),
    KUBECONFIG: cluster.kubeconfig,
    CLUSTER_PID: String(cluster.pid),
    CLUSTER_LOGS: cluster.logs,
  }
}

/** Runs a command in the cluster's network. */
function spawnInside(
  cluster: Cluster,
  command: readonly string[],
  env: NodeJS.ProcessEnv,
): ChildProcess {
  const inside = ['--target', String(cluster.pid), '--net', '--', ...command]
  return spawn('nsenter', inside, { stdio: 'inherit', env, timeout: TESTS_MS_MAX })
}

interface Count {
  readonly passed: number
  readonly failed: number
}

async function runTests(given: {
  cluster: Cluster
  env: NodeJS.ProcessEnv
  folder: string
  patterns: readonly string[]
}): Promise<Count> {
  const { cluster, env, folder, patterns } = given
  const outputFile = join(folder, 'result.json')
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
  const jest = [...flags, join('node_modules', 'jest', 'bin', 'jest.js'), '--runInBand']
  const what = ['--selectProjects', 'cluster', '--json', `--outputFile=${outputFile}`, '--verbose']
  const chosen = patterns.length === 0 ? LONG : ['--testPathPatterns', ...patterns]
  const child = spawnInside(cluster, [process.execPath, ...jest, ...what, ...chosen], env)
  ending.signal.addEventListener('abort', () => child.kill('SIGTERM'))
  const [code] = (await once(child, 'exit')) as [number | null]
  ending.signal.throwIfAborted()
  const result = JSON.parse(await readFile(outputFile, 'utf8')) as {
    numPassedTests: number
    numFailedTests: number
    numPendingTests: number
    numFailedTestSuites: number
  }
  // A suite that does not load has no failed tests; a test that is skipped has failed here.
  const failed = patterns.length === 0 ? result.numPendingTests : 0
  const faults = [failed + result.numFailedTests, result.numFailedTestSuites, code === 0 ? 0 : 1]
  return { passed: result.numPassedTests, failed: Math.max(...faults) }
}

async function stay(cluster: Cluster, programs: string): Promise<void> {
  const inside = `nsenter --target ${String(cluster.pid)} --net --`
  const found = `KUBECONFIG=${cluster.kubeconfig} PATH=${programs}:$PATH`
  say(`in the cluster's network: ${found} ${inside} kubectl get pods -A`)
  say(`logs: ${cluster.logs}; Ctrl-C takes it down`)
  const running = setInterval(() => undefined, 60_000)
  await once(ending.signal, 'abort')
  clearInterval(running)
}

async function main(): Promise<Count> {
  const options = { stay: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ allowPositionals: true, options })
  await findNodePackages()
  const programs = await findKubernetes(say)
  for (const major of helmMajors) await findHelm(major)
  // By now: from the cluster's network nothing can be fetched. Only the incidents need it.
  if (positionals.length > 0) await findPrometheus()
  const folder = await mkdtemp(join(tmpdir(), 'curtail-cluster-test-'))
  let cluster: Cluster | undefined
  try {
    say('starting the cluster')
    cluster = await startCluster(programs)
    say('the node is ready; building images')
    ending.signal.throwIfAborted()
    for (const path of await buildImages(folder)) {
      ending.signal.throwIfAborted()
      await cluster.load(path)
      await rm(path)
    }
    say('images are loaded')
    if (values.stay === true) {
      await stay(cluster, programs)
      return { passed: 0, failed: 0 }
    }
    const env = environmentOf(cluster, programs)
    return await runTests({ cluster, env, folder, patterns: positionals })
  } finally {
    await cluster?.stop()
    await rm(folder, { recursive: true, force: true })
    say('the cluster is down')
  }
}

let count: Count
try {
  count = await main()
} catch (error) {
  process.stdout.write(`FAILED ${error instanceof Error ? String(error.stack) : String(error)}\n`)
  count = { passed: 0, failed: 1 }
}
process.stdout.write(`${String(count.passed)} passed, ${String(count.failed)} failed\n`)
process.exitCode = count.failed === 0 ? 0 : 1
