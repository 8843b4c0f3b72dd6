// Jest's runner for the mutation tests: a mutant runs only the test files that cover it, until one
// of them fails or their time is over, in the order of their run time per mutant that they detect.
// Stryker selects by name only, so that Jest would load every file for every mutant, and does not
// use Jest's `bail`.
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import jestRunner, { type Test, type TestRunnerOptions, type TestWatcher } from 'jest-runner'

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
const TESTS_MS_MAX = 10_000
/** About how long Jest takes to load a file. */
const LOAD_MS = 300

/** How many mutants each file has run in this process, and how many of them it has detected. */
const counts = new Map<string, { runs: number; detected: number }>()
/** Higher counts are halved, because the next source files need other tests. */
const RUNS_MAX = 20

/** Stryker sets it during the run of a mutant. */
const activeMutant = () => process.env['__STRYKER_ACTIVE_MUTANT__']

/** A runner of Jest. */
export default class MutantsRunner extends TestRunner {
  override async runTests(
    tests: Test[],
    watcher: TestWatcher,
    options: TestRunnerOptions,
  ): Promise<void> {
    const files: TestFile[] = []
    const failed = new Set<string>()
    this.on('test-file-failure', ([test]) => {
      failed.add(test.path)
    })
    this.on('test-file-success', ([, result]) => {
      const { testFilePath: path, perfStats, testResults, numFailingTests } = result
      files.push({ path, ms: perfStats.runtime, names: testResults.map((one) => one.fullName) })
      if (numFailingTests > 0 || result.testExecError !== undefined) failed.add(path)
    })
    if (activeMutant() === undefined) {
      await super.runTests(tests, watcher, options)
      writeFileSync(RECORD, JSON.stringify(files))
      return
    }
    const startMs = performance.now()
    for (const test of selectTests(tests, this._globalConfig.testNamePattern)) {
      await super.runTests([test], watcher, options)
      count(test.path, failed.size > 0)
      if (failed.size > 0 || performance.now() - startMs > TESTS_MS_MAX) return
    }
  }
}

function count(path: string, isDetected: boolean): void {
  const { runs, detected } = counts.get(path) ?? { runs: 0, detected: 0 }
  const factor = runs < RUNS_MAX ? 1 : 0.5
  counts.set(path, {
    runs: runs * factor + 1,
    detected: detected * factor + (isDetected ? 1 : 0),
  })
}

/** The run time of a file per mutant that it detects; one that has run none counts as detecting. */
function cost({ path, ms }: TestFile): number {
  const { runs, detected } = counts.get(path) ?? { runs: 0, detected: 0 }
  return ((LOAD_MS + ms) * (runs + 1)) / (detected + 1)
}

/** The files with a test whose name matches, in the order of their cost. */
function selectTests(tests: readonly Test[], pattern?: string): readonly Test[] {
  const files = JSON.parse(readFileSync(RECORD, 'utf8')) as readonly TestFile[]
  const name = new RegExp(pattern ?? '', 'i') // as Jest matches it
  const isSelected = (file: TestFile) => file.names.some((one) => name.test(one))
  return files
    .filter(isSelected)
    .sort((one, other) => cost(one) - cost(other))
    .flatMap(({ path }) => tests.filter((test) => test.path === path))
}
