// Writes lines to the output of a command, as fast as its reader accepts them.
import type { Writable } from 'node:stream'
import { OperatorError } from '../process/role.ts'
import { untilAborted } from './until-aborted.ts'

/** The output failed, or the command was stopped during a write: a line may be incomplete. */
export class OutputError extends OperatorError {}

/** Resolves once the reader of the output has accepted all of `lines`. Throws OutputError. */
export async function writeOutput(
  output: Writable,
  lines: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    await untilAborted(signal, writeLines(output, lines))
  } catch (error) {
    throw new OutputError((error as Error).message)
  }
}

/** Like `writeOutput`, but not stopped by a signal. Throws OperatorError. */
export function writeLines(output: Writable, lines: string): Promise<void> {
  return new Promise((resolve, reject) => {
    output.write(lines, (error) => {
      if (error) reject(new OperatorError(`cannot write the output (${error.message})`))
      else resolve()
    })
  })
}
