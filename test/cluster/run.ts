// `npm run test:cluster [-- PATTERN...]`: starts the test cluster, loads the images, runs the tests
// of test/cluster in its network, and always stops it. The last line is `N passed, N failed`. With
// `--stay` it runs no tests, prints how to use the cluster, and waits for Ctrl-C.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Cluster, startCluster } from '../../k8s/cluster/start-cluster.ts'
import { writeTar } from '../../k8s/image/archive.ts'
import { findAvailablePackages } from '../../k8s/image/base-packages.ts'
import { buildImage } from '../../k8s/image/build.ts'
import { writeImageIndex } from '../../k8s/release/release.ts'
import { writeTags } from '../../k8s/release/repository.ts'
import { goMemory } from '../dependencies/go.ts'
import { helmMajors, findHelm } from '../dependencies/helm.ts'
import { buildServerImages } from '../dependencies/images.ts'
import { findNodePackages } from '../dependencies/kubernetes-packages.ts'
import { findKubernetes } from '../dependencies/kubernetes.ts'
import { findLastRelease } from '../dependencies/last-release.ts'
import { findPrometheus } from '../dependencies/prometheus.ts'
import { type Count, countTests, printCount } from '../jest-report.ts'
import { failureOf } from '../run-node.ts'
import { describeCluster } from './describe-cluster.ts'

const TESTS_MS_MAX = 60 * 60_000
/** Pods of a deleted namespace have up to 40 s to stop. */
const DELETION_MS_MAX = 120_000
const DELETION_POLL_MS = 500
/** The incidents take about twenty minutes and run only if a pattern selects them. */
const WITHOUT_INCIDENTS = ['--testPathIgnorePatterns', 'incidents']

/** The host of our images. */
const REGISTRY = 'localhost'

const startedMs = performance.now()

function log(line: string): void {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
  process.stdout.write(`[${seconds.padStart(4)} s] ${line}\n`)
}

/** Aborted by SIGINT and SIGTERM; stops everything. */
const shutdown = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    shutdown.abort(new Error(`stopped by ${signal}`))
  })
}

/** An archive of images, and their name if it only contains their tags. */
interface Archive {
  readonly path: string
  readonly name?: string
}

/** Builds the images of the servers beside ours, one of each at a time. */
async function buildImages(folder: string, withBad: boolean): Promise<readonly Archive[]> {
  const buildOurs = async (): Promise<readonly Archive[]> => {
    const ours = { path: await buildReleasedImage(folder), name: `${REGISTRY}/curtail` }
    const next = join(folder, 'next.tar')
    await buildImage({ names: ['localhost/curtail:next'], path: next, rewrite: addSchemaStep })
    if (!withBad) return [ours, { path: next }]
    const bad = join(folder, 'bad.tar')
    await buildImage({ names: ['localhost/curtail:bad'], path: bad, rewrite: addDefect })
    return [ours, { path: next }, { path: bad }]
  }
  const buildServers = async () =>
    (await buildServerImages(folder)).map((path): Archive => ({ path }))
  return (await Promise.all([buildOurs(), buildServers()])).flat()
}

/** Builds the image `test` as a release does: an OCI layout with compressed layers. */
async function buildReleasedImage(folder: string): Promise<string> {
  const work = await mkdtemp(join(folder, 'release-'))
  for (const name of ['oci', 'files']) await mkdir(join(work, name))
  const source = { version: 'test', commit: '', created: new Date(0).toISOString() }
  const packages = await findAvailablePackages(['amd64'])
  const options = { registry: REGISTRY, packages, architectures: ['amd64'] } as const
  const [{ repository }] = await writeImageIndex(work, source, options)
  await writeTags(repository)
  const path = join(folder, 'test.tar')
  await writeTar({ folder: repository.folder, name: '.', path })
  await rm(work, { recursive: true })
  return path
}

/** Image `next`: `test` with one more schema migration. */
function addSchemaStep(text: string, place: string): string {
  if (place !== 'src/stores/cassandra/schema.ts') return text
  const at = text.indexOf('\n]\n', text.indexOf('export const migrations'))
  if (at < 0) throw new Error(`${place} has changed: cannot find the end of its migrations`)
  const alter = 'ALTER TABLE KEYSPACE.links ADD IF NOT EXISTS of_next_release text'
  const step = `{ version: 1000, about: 'a test', statements: ['${alter}'] },`
  return `${text.slice(0, at)}\n  ${step}${text.slice(at)}`
}

/** Lines before which image `bad` throws: its pods are ready, but every request fails. */
const defectLines: Readonly<Record<string, string>> = {
  'src/create/create-link.ts': 'const deadlineMs = deps.monotonicMs() + CREATE_MS_MAX',
  'src/resolve/read-tiers.ts': 'let cached: CacheResult | undefined',
}

function addDefect(text: string, place: string): string {
  const line = defectLines[place]
  if (line === undefined) return text
  if (!text.includes(line)) throw new Error(`${place} has changed: it has no line "${line}"`)
  return text.replace(line, `if (Date.now() > 0) throw new Error('a defect')\n${line}`)
}

/** The environment of the cluster tests, with the variables that identify the cluster. */
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
  return spawn('nsenter', inside, { stdio: 'inherit', env })
}

async function runTests(options: {
  cluster: Cluster
  env: NodeJS.ProcessEnv
  folder: string
  patterns: readonly string[]
}): Promise<Count> {
  const { cluster, env, folder, patterns } = options
  const outputFile = join(folder, 'result.json')
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
  const jest = [...flags, join('node_modules', 'jest', 'bin', 'jest.js'), '--runInBand']
  const args = ['--selectProjects', 'cluster', '--json', `--outputFile=${outputFile}`, '--verbose']
  args.push('--testSequencer', './test/cluster/test-order.ts')
  const selection = patterns.length === 0 ? WITHOUT_INCIDENTS : ['--testPathPatterns', ...patterns]
  const child = spawnInside(cluster, [process.execPath, ...jest, ...args, ...selection], env)
  shutdown.signal.addEventListener('abort', () => child.kill('SIGTERM'))
  const failure = await failureOf(child, { timeout: TESTS_MS_MAX, result: { path: outputFile } })
  shutdown.signal.throwIfAborted()
  const run = { name: 'cluster', failure, canSkip: patterns.length > 0 }
  const { passed, failures } = await countTests(outputFile, run)
  return { passed, failures: [...failures, ...(await findStuckNamespaces(cluster))] }
}

/** One failure for each namespace that a test deleted and that still exists at the deadline. */
async function findStuckNamespaces(cluster: Cluster): Promise<readonly string[]> {
  const endMs = performance.now() + DELETION_MS_MAX
  for (;;) {
    const namespaces = await cluster.kubectl(['get', 'namespaces', '--no-headers'])
    const stuck = namespaces.split('\n').filter((row) => row.includes(' Terminating '))
    if (stuck.length === 0) return []
    if (performance.now() > endMs) return stuck.map((row) => `FAILED to delete a namespace: ${row}`)
    await sleep(DELETION_POLL_MS)
  }
}

async function stay(cluster: Cluster, programs: string): Promise<void> {
  log(await describeCluster(cluster, programs))
  shutdown.signal.throwIfAborted() // `once` does not resolve for an earlier event
  const keepAlive = setInterval(() => undefined, 60_000)
  await once(shutdown.signal, 'abort')
  clearInterval(keepAlive)
}

async function main(): Promise<Count> {
  Object.assign(process.env, goMemory)
  const options = { stay: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ allowPositionals: true, options })
  await findNodePackages()
  const programs = await findKubernetes(log)
  for (const major of helmMajors) await findHelm(major)
  // Before the tests start: downloads fail in the cluster's network.
  const lastRelease = await findLastRelease()
  const withIncidents = positionals.length > 0
  if (withIncidents) await findPrometheus()
  const folder = await mkdtemp(join(tmpdir(), 'curtail-cluster-test-'))
  log('starting the cluster; building images')
  const building = buildImages(folder, withIncidents)
  building.catch(() => undefined) // awaited below
  let cluster: Cluster | undefined
  try {
    cluster = await startCluster(programs)
    log('the node is ready')
    shutdown.signal.throwIfAborted()
    for (const { path, name } of await building) {
      shutdown.signal.throwIfAborted()
      await cluster.load(path, name)
      await rm(path)
    }
    await cluster.load(lastRelease.image)
    log('images loaded')
    if (values.stay === true) {
      await stay(cluster, programs)
      return { passed: 0, failures: [] }
    }
    const env = environmentOf(cluster, programs)
    return await runTests({ cluster, env, folder, patterns: positionals })
  } finally {
    await cluster?.stop()
    await Promise.allSettled([building])
    await rm(folder, { recursive: true, force: true })
    log('the cluster is stopped')
  }
}

let count: Count
try {
  count = await main()
} catch (error) {
  const reason = error instanceof Error ? String(error.stack) : String(error)
  count = { passed: 0, failures: [`FAILED ${reason}`] }
}
printCount(count)
process.exitCode = count.failures.length === 0 ? 0 : 1
