// Jest's runner for the mutation tests: a mutant runs only the test files that cover it, until one
// of them fails or their time is over, in the order of their run time per mutant that they detect.
// Stryker selects by name only, so that Jest would load every file for every mutant, and does not
// use Jest's `bail`.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import jestRunner, { type Test, type TestRunnerOptions, type TestWatcher } from 'jest-runner'
import { type Sources, SOURCES_FILE } from './reporter.ts'

// Its types are those of the CommonJS module, but its default export is the class.
const TestRunner = jestRunner as unknown as typeof jestRunner.default

/** What the run without a mutant has recorded of a test file. */
interface TestFile {
  readonly path: string
  readonly ms: number
  /** Full names of the tests. */
  readonly names: readonly string[]
}

/** Shared by the workers, whose working folder is Stryker's copy of the project. */
const RECORD = resolve('mutants-tests.json')

/** A mutant that has not failed a test by then counts as undetected; a file is not interrupted. */
const TESTS_MS_MAX = Number(process.env['MUTANT_TESTS_MS'])
/** About how long Jest takes to load a file. */
const LOAD_MS = 300

/** How many mutants of a source file a test file has run, and has detected. */
interface Counts {
  runs: number
  detected: number
}

/** Counts by source file and test file, for the next process of a worker. */
const COUNTS = resolve('mutants-counts.json')
const counts = new Map<string, Counts>()

/** The source file of the active mutant; `undefined` in the run without a mutant. */
function mutatedFile(): string | undefined {
  const id = process.env['__STRYKER_ACTIVE_MUTANT__'] // set by Stryker
  if (id === undefined) return undefined
  const sources = JSON.parse(readFileSync(resolve('..', SOURCES_FILE), 'utf8')) as Sources
  return sources[id]
}

/** A runner of Jest. */
export default class MutantsRunner extends TestRunner {
  override async runTests(
    tests: Test[],
    watcher: TestWatcher,
    options: TestRunnerOptions,
  ): Promise<void> {
    const record: TestFile[] = []
    const failed = new Set<string>()
    this.on('test-file-failure', ([test]) => {
      failed.add(test.path)
    })
    this.on('test-file-success', ([, result]) => {
      const { testFilePath: path, perfStats, testResults, numFailingTests } = result
      record.push({ path, ms: perfStats.runtime, names: testResults.map((one) => one.fullName) })
      if (numFailingTests > 0 || result.testExecError !== undefined) failed.add(path)
    })
    const source = mutatedFile()
    if (source === undefined) {
      await super.runTests(tests, watcher, options)
      writeFileSync(RECORD, JSON.stringify(record))
      return
    }
    const startMs = performance.now()
    if (counts.size === 0) loadCounts()
    const selected = selectTests(tests, this._globalConfig.testNamePattern)
    for (const test of inOrderOfCost(selected, source)) {
      await super.runTests([test], watcher, options)
      count(`${source} ${test.path}`, failed.size > 0)
      if (failed.size > 0 || performance.now() - startMs > TESTS_MS_MAX) return
    }
  }
}

function loadCounts(): void {
  if (!existsSync(COUNTS)) return
  const entries = JSON.parse(readFileSync(COUNTS, 'utf8')) as [string, Counts][]
  for (const [key, value] of entries) counts.set(key, value)
}

function count(key: string, isDetected: boolean): void {
  const { runs, detected } = counts.get(key) ?? { runs: 0, detected: 0 }
  counts.set(key, { runs: runs + 1, detected: detected + (isDetected ? 1 : 0) })
  const copy = `${COUNTS}.${String(process.pid)}`
  writeFileSync(copy, JSON.stringify([...counts]))
  renameSync(copy, COUNTS)
}

/** A test file of the run, with its run time. */
interface SelectedTest {
  readonly test: Test
  readonly ms: number
}

/**
 * By run time per detected mutant of the source file. Until there are counts, its own test is
 * first, even if it is slow; a test that imports it, or is in its folder, is expected to detect
 * half of them.
 */
function inOrderOfCost(selected: readonly SelectedTest[], source: string): readonly Test[] {
  const ownTest = source.replace(/\.ts$/, '.test.ts')
  const imported = `/${basename(source)}'`
  const folder = `/${dirname(source)}/`
  const expectedOf = ({ path }: Test) => {
    if (path.endsWith(ownTest)) return 3
    return path.includes(folder) || readFileSync(path, 'utf8').includes(imported) ? 0.5 : 0.1
  }
  const costOf = ({ test, ms }: SelectedTest) => {
    const { runs, detected } = counts.get(`${source} ${test.path}`) ?? { runs: 0, detected: 0 }
    return ((LOAD_MS + ms) * (runs + 1)) / (detected + expectedOf(test))
  }
  const costs = new Map(selected.map((one) => [one, costOf(one)]))
  return selected
    .toSorted((one, other) => (costs.get(one) ?? 0) - (costs.get(other) ?? 0))
    .map(({ test }) => test)
}

/** The files with a test whose name matches. */
function selectTests(tests: readonly Test[], pattern?: string): readonly SelectedTest[] {
  const recorded = JSON.parse(readFileSync(RECORD, 'utf8')) as readonly TestFile[]
  const name = new RegExp(pattern ?? '', 'i') // as Jest matches it
  return recorded
    .filter(({ names }) => names.some((one) => name.test(one)))
    .flatMap(({ path, ms }) =>
      tests.filter((test) => test.path === path).map((test) => ({ test, ms })),
    )
}
