// The options of `npm run stack`: parses and validates them; starts nothing.
import { parseArgs } from 'node:util'

/** The options of a run. */
export interface RunOptions {
  readonly isSmall: boolean
  readonly hasAllowance: boolean
  readonly showsLogs: boolean
  readonly port: number
  readonly trustedHops: number
  /** Codes in the pool. */
  readonly codes: number
}

/** An invalid option, explained in one sentence. */
export class OptionError extends Error {
  override readonly name = 'OptionError'
}

/** What `--help` prints. */
export const runHelp = `Usage: npm run stack -- [--small] [--allowance] [--logs] [--port N]
       [--trusted-hops N] [--target CODES]

Starts the whole distributed service on this machine, until Ctrl-C.
  --small           one Cassandra node instead of three
  --allowance       Envoy admits a few redirects of each client without a call to the limiter
  --logs            prints the logs of all processes
  --port N          where Envoy listens; default 8080
  --trusted-hops N  trusted proxies before Envoy that set X-Forwarded-For; default 0
  --target CODES    codes in the pool; default 20000
`

const options = {
  small: { type: 'boolean', default: false },
  allowance: { type: 'boolean', default: false },
  logs: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  port: { type: 'string', default: '8080' },
  'trusted-hops': { type: 'string', default: '0' },
  target: { type: 'string', default: '20000' },
} as const

/** Parses the command line. Throws OptionError. */
export function parseRunOptions(args: readonly string[]): RunOptions | 'help' {
  const values = valuesOf(args)
  if (values.help) return 'help'
  const number = (name: 'port' | 'trusted-hops' | 'target', min: number, max: number) => {
    const text = values[name]
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    const allowed = `an integer from ${String(min)} to ${String(max)}`
    throw new OptionError(`--${name} must be ${allowed}: it is ${JSON.stringify(text)}`)
  }
  return {
    isSmall: values.small,
    hasAllowance: values.allowance,
    showsLogs: values.logs,
    port: number('port', 1, 65_535),
    trustedHops: number('trusted-hops', 0, 10),
    codes: number('target', 1, 1_000_000),
  }
}

function valuesOf(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, strict: true }).values
  } catch (error) {
    const [first = ''] = (error as Error).message.split(/\.\s|\n/)
    throw new OptionError(`${first}; --help lists the options`)
  }
}
