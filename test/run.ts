// Runs the tests: `ok` runs the levels that need only Node.js, `all` also every other level below
// the cluster. Each check and each jest test counts as one; the last line is `N passed, N failed`.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { goMemory } from './dependencies/go.ts'
import { type Count, countTests, printCount } from './jest-report.ts'
import { runNode } from './run-node.ts'

const bin = (path: string) => join('node_modules', path)
/** Cache of a check: the next run checks only changed files. */
const cached = (name: string) => join('node_modules', '.cache', `curtail-${name}`)
/** A step that takes longer is terminated and has failed. */
const CHECK_MS_MAX = 5 * 60_000
/** The same at low priority, beside tests that use most of the CPU time. */
const LOW_PRIORITY_CHECK_MS_MAX = 40 * 60_000
const UNIT_MS_MAX = 10 * 60_000
const LEVEL_MS_MAX = 50 * 60_000
/** A first run downloads and builds everything: about ten minutes on two idle cores. */
const DEPENDENCIES_MS_MAX = 40 * 60_000

const checks: Readonly<Record<string, readonly string[]>> = {
  lint: [bin('eslint/bin/eslint.js'), '--max-warnings=0', '.'],
  types: [bin('typescript/bin/tsc'), '--incremental', '--tsBuildInfoFile', cached('types')],
  format: [
    bin('prettier/bin/prettier.cjs'),
    ...['--check', '--log-level=warn'],
    ...['--cache', '--cache-strategy=content', `--cache-location=${cached('format')}`],
    '.',
  ],
  unused: [bin('knip/bin/knip.js'), '--no-progress'],
  'import rules': [
    bin('dependency-cruiser/bin/dependency-cruiser.mjs'),
    '--config=.dependency-cruiser.cjs',
    '--output-type=err',
    'src',
    'test',
    'loadtest',
    'envoy',
    'charts',
    'k8s',
  ],
}

interface CheckLimits {
  readonly env: NodeJS.ProcessEnv
  readonly timeout: number
  readonly isLowPriority?: boolean
}

async function runCheck(
  name: string,
  args: readonly string[],
  limits: CheckLimits,
): Promise<Count> {
  const startedMs = performance.now()
  const failure = await runNode(args, limits)
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  const result = failure === undefined ? `ok ${name}` : `FAILED ${name}: ${failure}`
  process.stdout.write(`${result} (${seconds} s)\n`)
  return failure === undefined ? { passed: 1, failures: [] } : { passed: 0, failures: [result] }
}

/** Runs the checks, at most `atOnce` at a time; the first ones take longest. */
async function runChecks(atOnce: number, limits: CheckLimits): Promise<Count[]> {
  const counts: Count[] = []
  const left = Object.entries(checks).values()
  const runSome = async () => {
    for (const [name, args] of left) counts.push(await runCheck(name, args, limits))
  }
  await Promise.all(Array.from({ length: atOnce }, runSome))
  return counts
}

/** One for each core of the CI machine. */
const PARALLEL_MAX = 2
/** Folders of test/component, and `contract`; they take from eight minutes to ten seconds. */
const LONGEST_FIRST = [
  ...['stores', 'processes', 'ratelimit', 'chart', 'http', 'controller', 'edge', 'contract'],
  'kit',
]

/** The selections of the tests that start processes: one for each folder, the longest first. */
async function componentSelections(): Promise<readonly (readonly string[])[]> {
  const folders = [...(await readdir('test/component')), 'contract']
  const placeOf = (folder: string) => LONGEST_FIRST.indexOf(folder)
  return folders
    .sort((one, other) => placeOf(one) - placeOf(other))
    .map((folder) =>
      folder === 'contract'
        ? ['--selectProjects', folder]
        : ['--selectProjects', 'component', '--testPathPatterns', `/test/component/${folder}/`],
    )
}

/** Runs each selection, `PARALLEL_MAX` at a time; those beside each other have their own ports. */
async function runInParallel(env: NodeJS.ProcessEnv): Promise<Count[]> {
  const counts: Count[] = []
  const left = (await componentSelections()).values()
  const runSome = async (_: unknown, group: number) => {
    for (const selection of left) {
      counts.push(await runJest(selection, { ...env, TEST_GROUP: String(group) }))
    }
  }
  await Promise.all(Array.from({ length: PARALLEL_MAX }).map(runSome))
  return counts
}

/** Runs the selected tests; a run without a count counts as one failure. */
async function runJest(selection: readonly string[], env: NodeJS.ProcessEnv): Promise<Count> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-jest-'))
  const outputFile = join(folder, 'result.json')
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
  const args = [...flags, bin('jest/bin/jest.js'), '--json', `--outputFile=${outputFile}`]
  const isUnit = selection.includes('unit')
  // Levels that start processes run one file at a time: they share the machine's two cores.
  const inBand = isUnit ? ['--maxWorkers=2'] : ['--runInBand']
  const timeout = isUnit ? UNIT_MS_MAX : LEVEL_MS_MAX
  const name = selection.slice(1).join(' ')
  const bounds = { env, timeout, result: { path: outputFile } }
  let failure: string | undefined
  try {
    failure = await runNode([...args, ...inBand, ...selection], bounds)
    return await countTests(outputFile, { name, failure })
  } catch (error) {
    const reason = failure ?? `no count: ${String(error)}`
    return { passed: 0, failures: [`FAILED jest ${name}: ${reason}`] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function runOk(env: NodeJS.ProcessEnv): Promise<Count[]> {
  const counts = await runChecks(PARALLEL_MAX, { env, timeout: CHECK_MS_MAX })
  return [...counts, await runJest(['--selectProjects', 'unit'], env)]
}

/** Runs everything; the checks use the CPU time that the tests leave idle. */
async function runAll(env: NodeJS.ProcessEnv): Promise<Count[]> {
  const limits = { env, timeout: LOW_PRIORITY_CHECK_MS_MAX, isLowPriority: true }
  const checking = runChecks(1, limits)
  const counts = [await runJest(['--selectProjects', 'unit'], env)]
  counts.push(
    await runCheck('dependencies', ['test/dependencies/find-all.ts'], {
      env,
      timeout: DEPENDENCIES_MS_MAX,
    }),
  )
  counts.push(...(await runInParallel(env)), ...(await checking))
  // Alone, because its faults happen under load.
  counts.push(await runJest(['--selectProjects', 'stack'], env))
  return counts
}

async function main(level: string | undefined): Promise<number> {
  if (level !== 'ok' && level !== 'all') {
    process.stderr.write('curtail: test/run.ts takes ok or all\n')
    return 2
  }
  // Processes that the tests start run on the same Node.js, and compile each module once.
  const PATH = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
  const compiled = { NODE_COMPILE_CACHE: resolve(cached('compiled')) }
  const env = { ...process.env, ...goMemory, ...compiled, PATH }
  const counts = level === 'ok' ? await runOk(env) : await runAll(env)
  const passed = counts.reduce((sum, count) => sum + count.passed, 0)
  const failures = counts.flatMap((count) => count.failures)
  printCount({ passed, failures })
  return failures.length === 0 ? 0 : 1
}

process.exitCode = await main(process.argv[2])
