// What the front door knows of a role: what to say of it, and how to start it.
import {
  type ConfigOf,
  type Environment,
  parseConfig,
  renderSettings,
  type Settings,
  type Together,
} from '../config/config.ts'
import type { Stop } from './stop.ts'

/** A service that runs until it is stopped, or the exit code of a command that has ended. */
export type Started =
  | {
      readonly stop: Stop
      /** How long that may take, if the role's own work is to wait for another process. */
      readonly stopMsMax?: number
    }
  | { readonly exitCode: number }

/**
 * Stops what has been started; during the start it waits, so that nothing stays half started.
 * Resolves to the exit code of the process.
 */
export async function stopStarted(starting: Promise<Started>): Promise<number> {
  const started = await starting
  if ('exitCode' in started) return started.exitCode
  await started.stop()
  return 0
}

/** A role as main.ts sees it. */
export interface Role {
  /** What `--help` prints. */
  readonly help: string
  /** The settings that it reads; the documentation is checked against them. */
  readonly settings: Settings
  /**
   * Reads the configuration and starts. Throws ConfigError, or UsageError for its arguments.
   * `signal` aborts when the process is to end, also while it is starting.
   */
  start(given: { env: Environment; args: readonly string[]; signal: AbortSignal }): Promise<Started>
}

/** The arguments are not those of the role; main.ts prints the message and ends with code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Throws UsageError if a role that takes no arguments was given some. */
export function refuseArguments(role: string, args: readonly string[]): void {
  if (args.length > 0) throw new UsageError(`${role} takes no arguments: ${args.join(' ')}`)
}

/** What the operator can mend; main.ts prints the message, one line, and ends with exit code 1. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** Whether `--help` or `-h` is there; after `--` they are codes, as in `link show -- -h`. */
export function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === '--help' || arg === '-h')
}

/** Makes a role of its parts. */
export function defineRole<const S extends Settings>(role: {
  /** How it is called, such as `standalone [--greet]`. */
  readonly usage: string
  /** What it does, in a few lines. */
  readonly about: string
  readonly settings: S
  /** What of them must fit together. */
  readonly tied?: readonly Together[]
  readonly run: (given: {
    config: ConfigOf<S>
    args: readonly string[]
    signal: AbortSignal
  }) => Promise<Started>
}): Role {
  const { usage, about, settings, tied, run } = role
  return {
    help: `Usage: curtail ${usage}\n\n${about}\n${environmentOf(settings)}`,
    settings,
    start: ({ env, args, signal }) =>
      run({ config: parseConfig(settings, env, tied), args, signal }),
  }
}

function environmentOf(settings: Settings): string {
  if (Object.keys(settings).length === 0) return ''
  return `\nEnvironment:\n${renderSettings(settings)}\n`
}
