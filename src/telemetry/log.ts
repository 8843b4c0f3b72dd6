// JSON lines on stdout, one object per line. Successful requests are not logged: the edge logs
// them. A line must not contain a key, a token or a user's URL.
import { pino, type Logger, stdSerializers } from 'pino'
import { createLogOutput } from './log-output.ts'
import { installedSpans } from './spans.ts'

/** The values of LOG_LEVEL, quietest last. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** The subset of the logger that modules depend on. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/** The logger of one process. Lines have `role`, and the trace ids within a traced request. */
export function createLog(options: { role: string; level: string }): Logger {
  const spans = installedSpans()
  const output = createLogOutput(process.stdout, (lines) => {
    log.warn({ lines }, 'log lines dropped: stdout was not read')
  })
  const shape = {
    ...(spans !== undefined && { mixin: () => spans.currentIds() ?? {} }),
    level: options.level,
    base: { role: options.role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  }
  const log = pino(shape, output)
  return log
}

/** An error as logged, without the command that a driver attaches: it may hold secrets. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const described: Record<string, unknown> = { ...stdSerializers.err(error) }
  delete described['command']
  return described
}
