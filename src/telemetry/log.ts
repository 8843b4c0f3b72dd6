// JSON lines on stdout, one object a line. No request is logged when it succeeds: the edge does
// that. No key, token or URL of a user belongs in a line.
import { pino, type Logger, stdSerializers } from 'pino'
import { createLogOutput } from './log-output.ts'
import { spansNow } from './spans.ts'

/** The levels LOG_LEVEL takes, quietest last. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Part of the logger that rooms ask for. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/** The logger of one process; `role` stands in every line, the ids of a traced request in its. */
export function createLog(options: { role: string; level: string }): Logger {
  const spans = spansNow()
  const output = createLogOutput(process.stdout, (lines) => {
    log.warn({ lines }, 'lines of the log were lost: nobody read them')
  })
  const shape = {
    ...(spans !== undefined && { mixin: () => spans.idsNow() ?? {} }),
    level: options.level,
    base: { role: options.role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  }
  const log = pino(shape, output)
  return log
}

/** An error as a line shows it, less the command that a driver hangs on it: it may hold secrets. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const described: Record<string, unknown> = { ...stdSerializers.err(error) }
  delete described['command']
  return described
}
