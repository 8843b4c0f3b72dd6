// A role as run-program.ts uses it: its help, its settings and its start.
import {
  type ConfigOf,
  type Environment,
  type RoleSettings,
  renderSettings,
  type Settings,
  startWithConfig,
} from '../config/config.ts'
import { renderCommands, renderFlags, renderUsage } from './command-help.ts'
import { type Commands, type Parsed, parseCommand } from './command-line.ts'
import type { Stop } from './stop.ts'

export { UsageError } from './usage-error.ts'

/** A service that runs until it is stopped, or the exit code of a completed command. */
export type StartedRole =
  | {
      readonly stop: Stop
      /** How long the stop may take, if the role waits for another process. */
      readonly stopMsMax?: number
    }
  | { readonly exitCode: number }

/**
 * Stops a role, after its start has completed, so that nothing stays partly started. Resolves to
 * the exit code of the process.
 */
export async function stopStarted(starting: Promise<StartedRole>): Promise<number> {
  const started = await starting
  if ('exitCode' in started) return started.exitCode
  await started.stop()
  return 0
}

/** A role, as run-program.ts uses it. */
export interface Role {
  /** The output of `--help`, for the role or for one of its commands. */
  readonly renderHelp: (command?: string) => string
  /** Its commands, for the completion of shells. */
  readonly commands: Commands
  /** The settings that it reads; a test compares the documentation with them. */
  readonly settings: Settings
  /**
   * Reads the configuration and starts. Throws ConfigError, or UsageError for its arguments.
   * `signal` aborts when the process must stop, even during the start.
   */
  start(given: {
    env: Environment
    args: readonly string[]
    signal: AbortSignal
  }): Promise<StartedRole>
}

/** A problem that the operator can fix; run-program.ts prints the message and exits with 1. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** Whether `--help` or `-h` is given; after `--` they are operands, as in `link show -- -h`. */
export function hasHelpFlag(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === '--help' || arg === '-h')
}

/** The only command of a role that takes no arguments. */
const noArguments = { '': { about: '' } } as const

/** Creates a role. */
export function defineRole<const S extends Settings, const C extends Commands = typeof noArguments>(
  role: RoleSettings<S> & {
    /** The word that selects it on the command line. */
    readonly name: string
    /** What the role does, in a few lines. */
    readonly about: string
    /** Its commands; a role without commands has one whose name is empty. @default no arguments */
    readonly commands?: C
    /** Throws UsageError for arguments that are not valid, before the settings are read. */
    readonly check?: (args: Parsed<C>) => unknown
    readonly run: (given: {
      config: ConfigOf<S>
      args: Parsed<C>
      signal: AbortSignal
    }) => Promise<StartedRole>
  },
): Role {
  const { name, about, settings, check, run } = role
  const commands = role.commands ?? (noArguments as Commands as C)
  return {
    renderHelp: (command) => renderHelp({ name, about, settings, commands }, command),
    commands,
    settings,
    start: ({ env, args: given, signal }) => {
      const args = parseCommand(name, commands, given)
      check?.(args)
      return startWithConfig(role, env, (config) => run({ config, args, signal }))
    },
  }
}

interface Described {
  readonly name: string
  readonly about: string
  readonly settings: Settings
  readonly commands: Commands
}

function renderHelp({ name, about, settings, commands }: Described, given = ''): string {
  const command = commands[given]
  if (given === '' || command === undefined) {
    const usage = renderUsage(name, commands)
    return `${usage}\n${about}\n${renderCommands(commands)}${renderEnvironment(settings)}`
  }
  const usage = renderUsage(name, { [given]: command })
  const sentence = `${command.about.charAt(0).toUpperCase()}${command.about.slice(1)}.`
  const details = `Details: curtail ${name} --help`
  const options = renderFlags([command]) + renderEnvironment(settings)
  return `${usage}\n${sentence}\n${options}\n${details}\n`
}

function renderEnvironment(settings: Settings): string {
  if (Object.keys(settings).length === 0) return ''
  return `\nEnvironment:\n${renderSettings(settings)}\n`
}
