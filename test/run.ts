// Runs the tests: `ok` runs the levels that need only Node.js, `all` also every other level below
// the cluster. Each check and each jest test counts as one; the last line is `N passed, N failed`.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Count, countTests, printCount } from './jest-report.ts'
import { runNode } from './run-node.ts'

const bin = (path: string) => join('node_modules', path)
/** Cache of a check: the next run checks only changed files. */
const cached = (name: string) => join('node_modules', '.cache', `curtail-${name}`)
/** A step that takes longer is terminated and has failed. */
const CHECK_MS_MAX = 5 * 60_000
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

async function runCheck(
  name: string,
  args: readonly string[],
  limits: { env: NodeJS.ProcessEnv; timeout: number },
): Promise<Count> {
  const startedMs = performance.now()
  const failure = await runNode(args, limits)
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  const result = failure === undefined ? `ok ${name}` : `FAILED ${name}: ${failure}`
  process.stdout.write(`${result} (${seconds} s)\n`)
  return failure === undefined ? { passed: 1, failures: [] } : { passed: 0, failures: [result] }
}

/**
 * Two groups that take equally long run beside each other, which keeps both cores busy: the stores
 * and the limiter, and everything else.
 */
const FIRST_GROUP = 'test/component/(kit|ratelimit|stores)/'
const groups: readonly (readonly string[])[] = [
  ['--selectProjects', 'component', '--testPathPatterns', FIRST_GROUP],
  ['--selectProjects', 'component', 'contract', '--testPathIgnorePatterns', FIRST_GROUP],
]

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

async function main(level: string | undefined): Promise<number> {
  if (level !== 'ok' && level !== 'all') {
    process.stderr.write('curtail: test/run.ts takes ok or all\n')
    return 2
  }
  // Processes that the tests start run on the same Node.js.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` }
  const counts: Count[] = []
  // Two at a time, one for each core of the CI machine; the longest first.
  const left = Object.entries(checks).values()
  const runSome = async () => {
    for (const [name, args] of left) {
      counts.push(await runCheck(name, args, { env, timeout: CHECK_MS_MAX }))
    }
  }
  await Promise.all([runSome(), runSome()])
  counts.push(await runJest(['--selectProjects', 'unit'], env))
  if (level === 'all') {
    counts.push(
      await runCheck('dependencies', ['test/dependencies/find-all.ts'], {
        env,
        timeout: DEPENDENCIES_MS_MAX,
      }),
    )
    const runGroup = (selection: readonly string[], group: number) =>
      runJest(selection, { ...env, TEST_GROUP: String(group) })
    counts.push(...(await Promise.all(groups.map(runGroup))))
    counts.push(await runJest(['--selectProjects', 'stack'], env))
  }
  const passed = counts.reduce((sum, count) => sum + count.passed, 0)
  const failures = counts.flatMap((count) => count.failures)
  printCount({ passed, failures })
  return failures.length === 0 ? 0 : 1
}

process.exitCode = await main(process.argv[2])
