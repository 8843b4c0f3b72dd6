// Runs the tests: `ok` runs the levels that need only Node.js, `all` also every other level below
// the cluster. Each check and each jest test counts as one; the last line is `N passed, N failed`.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runNode } from './run-node.ts'

interface Count {
  readonly passed: number
  readonly failed: number
}

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
  return failure === undefined ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}

/** Runs jest projects one after another; a run without a count counts as one failure. */
async function runJest(projects: readonly string[], env: NodeJS.ProcessEnv): Promise<Count> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-jest-'))
  const outputFile = join(folder, 'result.json')
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
  const args = [...flags, bin('jest/bin/jest.js'), '--json', `--outputFile=${outputFile}`]
  // Levels that start processes run one file at a time: they share the machine's two cores.
  const inBand = projects.includes('unit') ? ['--maxWorkers=2'] : ['--runInBand']
  const timeout = projects.includes('unit') ? UNIT_MS_MAX : LEVEL_MS_MAX
  let failure: string | undefined
  try {
    failure = await runNode([...args, ...inBand, '--selectProjects', ...projects], { env, timeout })
    const result = JSON.parse(await readFile(outputFile, 'utf8')) as {
      numPassedTests: number
      numFailedTests: number
      numPendingTests: number
      numFailedTestSuites: number
    }
    // A suite that does not even load has no failed tests; a skipped test is a failure here.
    const failed = Math.max(
      result.numFailedTests + result.numPendingTests,
      result.numFailedTestSuites,
      failure === undefined ? 0 : 1,
    )
    return { passed: result.numPassedTests, failed }
  } catch (error) {
    const reason = failure ?? `no count: ${String(error)}`
    process.stdout.write(`FAILED jest ${projects.join(' ')}: ${reason}\n`)
    return { passed: 0, failed: 1 }
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
  counts.push(await runJest(['unit'], env))
  if (level === 'all') {
    counts.push(
      await runCheck('dependencies', ['test/dependencies/find-all.ts'], {
        env,
        timeout: DEPENDENCIES_MS_MAX,
      }),
    )
    for (const projects of [['contract', 'component'], ['stack']]) {
      counts.push(await runJest(projects, env))
    }
  }
  const passed = counts.reduce((sum, count) => sum + count.passed, 0)
  const failed = counts.reduce((sum, count) => sum + count.failed, 0)
  process.stdout.write(`${String(passed)} passed, ${String(failed)} failed\n`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main(process.argv[2])
