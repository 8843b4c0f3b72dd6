// A role as main.ts uses it: its help, its settings and its start.
import {
  type ConfigOf,
  type Environment,
  parseConfig,
  renderSettings,
  type Settings,
  type DependentSettings,
} from '../config/config.ts'
import type { Stop } from './stop.ts'

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

/** A role, as main.ts uses it. */
export interface Role {
  /** The output of `--help`. */
  readonly help: string
  /** The settings that it reads; a test compares the documentation with them. */
  readonly settings: Settings
  /**
   * Reads the configuration and starts. Throws ConfigError, or UsageError for its arguments.
   * `signal` aborts when the process must stop, also during the start.
   */
  start(given: {
    env: Environment
    args: readonly string[]
    signal: AbortSignal
  }): Promise<StartedRole>
}

/** Invalid arguments; main.ts prints the message and exits with code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Throws UsageError if a role without arguments received any. */
export function rejectArguments(role: string, args: readonly string[]): void {
  if (args.length > 0) throw new UsageError(`${role} takes no arguments: ${args.join(' ')}`)
}

/** A problem that the operator can fix; main.ts prints the one-line message and exits with 1. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** Whether `--help` or `-h` is given; after `--` they are codes, as in `link show -- -h`. */
export function hasHelpFlag(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === '--help' || arg === '-h')
}

/** Creates a role. */
export function defineRole<const S extends Settings>(role: {
  /** The command line, such as `standalone [--greet]`. */
  readonly usage: string
  /** What the role does, in a few lines. */
  readonly about: string
  readonly settings: S
  /** Checks of settings that depend on each other. */
  readonly dependent?: readonly DependentSettings[]
  readonly run: (given: {
    config: ConfigOf<S>
    args: readonly string[]
    signal: AbortSignal
  }) => Promise<StartedRole>
}): Role {
  const { usage, about, settings, dependent, run } = role
  return {
    help: `Usage: curtail ${usage}\n\n${about}\n${renderEnvironment(settings)}`,
    settings,
    start: ({ env, args, signal }) =>
      run({ config: parseConfig(settings, env, dependent), args, signal }),
  }
}

function renderEnvironment(settings: Settings): string {
  if (Object.keys(settings).length === 0) return ''
  return `\nEnvironment:\n${renderSettings(settings)}\n`
}
