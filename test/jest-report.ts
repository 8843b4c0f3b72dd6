// Reads the JSON report of a jest run.
import { readFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** The members of jest's report that are read here. */
interface JestReport {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly TestResult[]
  }[]
}

interface TestResult {
  readonly fullName: string
  readonly status: string
  readonly failureMessages?: readonly string[]
}

/** Characters of the reason of a failure: its message and the first places of its stack. */
const REASON_CHARACTERS_MAX = 1200

/** The result of a run. */
export interface Count {
  readonly passed: number
  /** One entry for each failure: its test, then the reason. */
  readonly failures: readonly string[]
}

/** Prints the failures last, where a truncated log still shows them, then the counts. */
export function printCount({ passed, failures }: Count): void {
  for (const failure of failures) process.stdout.write(`${failure}\n`)
  process.stdout.write(`${String(passed)} passed, ${String(failures.length)} failed\n`)
}

/** A failure with its indented reason, so that the last lines of a log suffice. */
function withReason(failure: string, reason: string): string {
  const plain = stripVTControlCharacters(reason).slice(0, REASON_CHARACTERS_MAX).trimEnd()
  return plain === '' ? failure : `${failure}\n${plain.replace(/^/gm, '    ')}`
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
    const entries = failed.map((test) => {
      const name = `FAILED ${file}: ${test.fullName} (${test.status})`
      return withReason(name, test.failureMessages?.join('\n') ?? '')
    })
    const isOnlySuite = suite.status === 'failed' && entries.length === 0
    return isOnlySuite ? [withReason(`FAILED ${file}`, suite.message)] : entries
  })
  // A run can fail after its last test: an open handle, an error in a timer, a crash.
  if (failure !== undefined && failures.length === 0) {
    failures.push(`FAILED jest ${name}, although its tests passed: ${failure}`)
  }
  return { passed: report.numPassedTests, failures }
}
