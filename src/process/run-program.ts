// Runs one role: parses the command line, passes the environment to the role, stops it on a signal,
// and maps its result to an exit code.
import { ConfigError, type Environment } from '../config/config.ts'
import { flushed } from '../telemetry/log-output.ts'
import { stopTracing } from '../telemetry/tracing.ts'
import { hasHelpFlag, OperatorError, type Role, stopStarted, UsageError } from './role.ts'
import { stopOnSignal } from './stop.ts'

/** The roles by name: what each does in a few words, and how to load it. */
export type Roles = Readonly<
  Record<
    string,
    readonly [about: string, load: (subcommand: string) => Promise<{ readonly role: Role }>]
  >
>

/** Another name of a role, with settings that apply unless the environment sets them. */
interface Alias {
  readonly program: string
  readonly role: string
  readonly defaults: Readonly<Record<string, string>>
}

/** How the process was started. */
interface Invocation {
  /** The name of a role and its arguments. */
  readonly args: readonly string[]
  readonly env: Environment
  readonly alias: Alias
}

/** Runs a role until it ends or is stopped; exits with 0, 1 for a failure, 2 for wrong usage. */
export async function runProgram(roles: Roles, invocation: Invocation): Promise<void> {
  // A closed pipe must not stop the process. Each write reports its error to its own caller.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  try {
    await run(roles, invocation)
  } catch (error) {
    printError(error)
    process.exit(error instanceof ConfigError || error instanceof UsageError ? 2 : 1)
  }
}

async function run(roles: Roles, { args: given, env, alias }: Invocation): Promise<void> {
  const [program = '', ...args] = given
  const isAlias = program === alias.program
  const name = isAlias ? alias.role : program
  if (name === 'help' || hasHelpFlag([name])) {
    process.stdout.write(usageOf(roles))
    return
  }
  const role = await loadRole(roles, name, args[0])
  if (hasHelpFlag(args)) {
    process.stdout.write(role.help)
    return
  }
  const stopping = new AbortController()
  const roleEnv = isAlias ? withDefaults(env, alias.defaults) : env
  const starting = role.start({ env: roleEnv, args, signal: stopping.signal })
  const stop = () => {
    stopping.abort()
    return stopStarted(starting).finally(stopTracing).finally(flushStdout)
  }
  let stopMsMax: number | undefined
  stopOnSignal({
    stop,
    onFailure: printError,
    onTimeout: (ms) => {
      printError(new OperatorError(`not stopped within ${ms} ms: exiting`))
    },
    msMax: () => stopMsMax,
  })
  const started = await starting
  if (!('exitCode' in started)) {
    stopMsMax = started.stopMsMax
    return
  }
  await stopTracing()
  await flushStdout()
  process.exit(started.exitCode) // even if a driver left handles open
}

async function loadRole(roles: Roles, name: string, subcommand = ''): Promise<Role> {
  const entry = Object.hasOwn(roles, name) ? roles[name] : undefined
  if (entry === undefined) {
    const names = Object.keys(roles).join(', ')
    const given = name === '' ? 'none is given' : `it is ${JSON.stringify(name)}`
    throw new UsageError(`ROLE must be one of ${names}: ${given}; --help lists them`)
  }
  const [, load] = entry
  return (await load(subcommand)).role
}

function usageOf(roles: Roles): string {
  const lines = Object.entries(roles).map(([name, [about]]) => `  ${name.padEnd(17)}${about}\n`)
  return [
    'Usage: curtail ROLE [--help]\n\nRoles:\n',
    ...lines,
    '\ncurtail ROLE --help prints the arguments and settings of a role.\n',
  ].join('')
}

function withDefaults(env: Environment, defaults: Alias['defaults']): Environment {
  const missing = Object.entries(defaults).filter(([name]) => (env[name] ?? '') === '')
  return { ...env, ...Object.fromEntries(missing) }
}

const flushStdout = () => flushed(process.stdout)

function printError(error: unknown): void {
  const expected = [ConfigError, UsageError, OperatorError].some((type) => error instanceof type)
  const message = expected ? (error as Error).message : ((error as Error).stack ?? String(error))
  for (const line of message.split('\n')) process.stderr.write(`curtail: ${line}\n`)
}
