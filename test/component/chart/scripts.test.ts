// actionlint checks the workflow that publishes a release, and ShellCheck all shell scripts.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { findReleaseTools } from '../../dependencies/release-tools.ts'
import { findShellcheck } from '../../dependencies/shellcheck.ts'

const run = promisify(execFile)
const RUN_MS_MAX = 60_000
const BUILD_MS_MAX = 900_000 // includes the build of the tools

/** The report of a program that exits with 1 if there are problems. */
async function problemsOf(program: string, ...args: readonly string[]): Promise<string> {
  const running = run(program, args, { timeout: RUN_MS_MAX })
  const { stdout } = await running.catch((error: unknown) => {
    const failure = error as { readonly code?: unknown; readonly stdout: string }
    if (failure.code !== 1) throw error
    return failure
  })
  return stdout
}

test(
  'the workflow that publishes a release has no problems, nor do its scripts',
  async () => {
    const actionlint = join(await findReleaseTools(), 'actionlint')
    const options = [`-shellcheck=${await findShellcheck()}`, '-no-color']
    expect(await problemsOf(actionlint, ...options, '.github/workflows/release.yaml')).toBe('')
  },
  BUILD_MS_MAX,
)

test(
  'the shell scripts have no problems',
  async () => {
    const search = ['grep', '-lIE', '^#!.*[/ ](ba)?sh$']
    const { stdout } = await run('git', search, { timeout: RUN_MS_MAX })
    const scripts = stdout.trimEnd().split('\n')
    expect(scripts).toEqual(expect.arrayContaining(['.ci/run', 'bin/kubectl-curtail']))
    // SC2174: `mkdir -p -m` sets only the mode of the last folder, as node.sh requires.
    const options = ['--severity=warning', '--exclude=SC2174']
    expect(await problemsOf(await findShellcheck(), ...options, ...scripts)).toBe('')
  },
  BUILD_MS_MAX,
)
