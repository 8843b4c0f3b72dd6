// Reads the JSON report of a jest run.
import { readFile } from 'node:fs/promises'
import { relative } from 'node:path'

/** The members of jest's report that are read here. */
interface JestReport {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

/** The result of a run. */
export interface Count {
  readonly passed: number
  /** One line for each failure. */
  readonly failures: readonly string[]
}

/** Prints the failures last, where a truncated log still shows them, then the counts. */
export function printCount({ passed, failures }: Count): void {
  for (const failure of failures) process.stdout.write(`${failure}\n`)
  process.stdout.write(`${String(passed)} passed, ${String(failures.length)} failed\n`)
}

/**
 * Counts the tests of a run named `name`. A skipped test is a failure unless `canSkip`; so is a
 * suite that did not load, and a run that failed for another reason, its `failure`.
 */
export async function countTests(
  path: string,
  run: { name: string; failure: string | undefined; canSkip?: boolean },
): Promise<Count> {
  const { name, failure, canSkip = false } = run
  const report = JSON.parse(await readFile(path, 'utf8')) as JestReport
  const good = canSkip ? ['passed', 'pending'] : ['passed']
  const failures = report.testResults.flatMap((suite) => {
    const file = relative(process.cwd(), suite.name)
    const failed = suite.assertionResults.filter((test) => !good.includes(test.status))
    const lines = failed.map((test) => `FAILED ${file}: ${test.fullName} (${test.status})`)
    return suite.status === 'failed' && lines.length === 0 ? [`FAILED ${file}`] : lines
  })
  // A run can fail after its last test: an open handle, an error in a timer, a crash.
  if (failure !== undefined && failures.length === 0) {
    failures.push(`FAILED jest ${name}, although its tests passed: ${failure}`)
  }
  return { passed: report.numPassedTests, failures }
}
