// Jest's runner for the mutation tests: a mutant runs only the test files that cover it, the
// fastest first, until one of them fails. Stryker selects by name only, so that Jest would load
// every file for every mutant, and Stryker does not use Jest's `bail`.
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
    for (const test of selectTests(tests, this._globalConfig.testNamePattern)) {
      await super.runTests([test], watcher, options)
      if (failed.size > 0) return
    }
  }
}

/** The files with a test whose name matches, in the order of their run time. */
function selectTests(tests: readonly Test[], pattern?: string): readonly Test[] {
  const files = JSON.parse(readFileSync(RECORD, 'utf8')) as readonly TestFile[]
  const name = new RegExp(pattern ?? '', 'i') // as Jest matches it
  const isSelected = (file: TestFile) => file.names.some((one) => name.test(one))
  return files
    .filter(isSelected)
    .sort((one, other) => one.ms - other.ms)
    .flatMap(({ path }) => tests.filter((test) => test.path === path))
}
