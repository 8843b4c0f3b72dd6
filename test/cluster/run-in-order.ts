// Runs commands as an operator types them: as printed, one after the other, in one shell.
import { expect } from '@jest/globals'
import { pathWithHelm, tryRun } from './cluster.ts'

/** Printed after the output of each command, with its exit code. */
const MARK = '--- exit code'

/** Resolves to the stdout of each command. Fails unless all succeed. */
export async function runInOrder(
  commands: readonly string[],
): Promise<{ readonly outputOf: (text: string) => string; readonly count: number }> {
  const script = commands.flatMap((command) => [
    // The port forwards log each connection between the outputs of the other commands.
    command.replace(/ &$/, ' > /dev/null 2>&1 &'),
    `printf '\\n${MARK} %s\\n' $?`,
  ])
  const setup = [`export PATH=${await pathWithHelm()}`, `trap 'kill $(jobs -p)' EXIT`]
  const { stdout, stderr } = await tryRun('bash', ['-c', [...setup, ...script].join('\n')])
  const found = stdout.split(new RegExp(`\n${MARK} (\\d+)\n`))
  const results = commands.map((command, at) => {
    return { command, output: found[2 * at] ?? '', exitCode: found[2 * at + 1] }
  })
  const failed = results.filter(({ exitCode }) => exitCode !== '0')
  expect([failed, failed.length === 0 ? '' : stderr]).toEqual([[], ''])
  return {
    /** The output of the first command that contains `text`. */
    outputOf: (text) =>
      results.find(({ command }) => command.includes(text))?.output ?? `no command has ${text}`,
    count: results.length,
  }
}
