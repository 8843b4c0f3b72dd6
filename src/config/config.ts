// Reads a role's configuration from the environment: checks every value, and the files that values
// name, and lists all problems together, one line each. Defines no settings; each role declares its
// own.
import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { within } from '../resilience/deadline.ts'
import { messageOf } from '../resilience/message-of.ts'

/** One setting: how it is parsed, and how `--help` and the documentation describe it. */
export interface Setting<T> {
  /** Parses the string from the environment, or `undefined`. */
  readonly schema: z.ZodType<T, string | undefined>
  /** The allowed values, such as `an integer from 0 to 65535`. */
  readonly allowed: string
  /** The default, as displayed; `required` if there is none. */
  readonly fallback: string
  /** The purpose of the setting. */
  readonly about: string
  /** A secret is never displayed, and may come from the file in `NAME_FILE`. */
  readonly secret?: boolean
}

/** A setting with a default; `shown`, if given, is displayed instead of the default. */
export function withDefault<T extends string | number | boolean>(given: {
  readonly about: string
  readonly allowed: string
  readonly fallback: NoInfer<T>
  readonly shown?: string
  readonly schema: z.ZodType<T, string>
}): Setting<T> {
  const { about, allowed, fallback, shown = String(fallback), schema } = given
  const optional = schema.optional().transform((value) => value ?? fallback)
  return { about, allowed, fallback: shown, schema: optional }
}

/** The settings of one role by their environment names. */
export type Settings = Readonly<Record<string, Setting<unknown>>>

/** The values of the settings `S`. */
export type ConfigOf<S extends Settings> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never
}

/** The process environment, or that of a test. */
export type Environment = Readonly<Record<string, string | undefined>>

/** All problems of a configuration, one line each; run-program.ts prints them and exits with 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** A check of settings that depend on each other and are each valid alone. */
export interface DependentSettings {
  readonly names: readonly string[]
  /** The problems of these values, one sentence each. */
  readonly findProblems: (values: Readonly<Record<string, unknown>>) => readonly string[]
}

/** Declares a check of `settings` that depend on each other. */
export function dependentSettings<S extends Settings>(
  settings: S,
  findProblems: (config: ConfigOf<S>) => readonly string[],
): DependentSettings {
  return {
    names: Object.keys(settings),
    findProblems: (values) => findProblems(values as ConfigOf<S>),
  }
}

/**
 * A check of the files that settings name. The start of a role reads these files itself. The check
 * reads them only after the start has failed, so that one run reports the problems of all settings.
 */
export interface FileSettings {
  readonly names: readonly string[]
  /** The problems of the files, one line each. */
  readonly findProblems: (values: Readonly<Record<string, unknown>>) => Promise<readonly string[]>
}

/** Declares a check of the files that `settings` name; `load` throws ConfigError. */
export function fileSettings<S extends Settings>(
  settings: S,
  load: (config: ConfigOf<S>) => unknown,
): FileSettings {
  return {
    names: Object.keys(settings),
    async findProblems(values) {
      try {
        await load(values as ConfigOf<S>)
        return []
      } catch (error) {
        if (error instanceof ConfigError) return error.problems
        throw error
      }
    },
  }
}

/** The raw value of a setting; an empty variable counts as absent. Throws ConfigError. */
function rawValueOf(name: string, secret: boolean, env: Environment): string | undefined {
  const valueOf = (key: string) => (env[key] === '' ? undefined : env[key])
  const raw = valueOf(name)
  const file = secret ? valueOf(`${name}_FILE`) : undefined
  if (file === undefined) return raw
  if (raw !== undefined)
    throw new ConfigError([`${name} and ${name}_FILE are both set: remove one`])
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw new ConfigError([`${name}_FILE must name a readable file: current value is ${file}`])
  }
}

/** The valid values of settings, and the problems of the others. */
interface Parsed {
  readonly values: Readonly<Record<string, unknown>>
  readonly problems: readonly string[]
}

/** Reads `settings` from `env`. Throws ConfigError with all problems. */
export function parseConfig<S extends Settings>(
  settings: S,
  env: Environment,
  dependent: readonly DependentSettings[] = [],
): ConfigOf<S> {
  const { values, problems } = parseAll(settings, env, dependent)
  if (problems.length > 0) throw new ConfigError(problems)
  return values as ConfigOf<S>
}

/** The settings of a role, and the checks of several settings and of files. */
export interface RoleSettings<S extends Settings> {
  readonly settings: S
  readonly dependent?: readonly DependentSettings[] | undefined
  readonly files?: readonly FileSettings[] | undefined
}

const CHECKS_MS_MAX = 10_000

/**
 * Calls `start` with the settings in `env`. Throws ConfigError with the problems of all settings
 * and of all files that they name, even if `start` throws it for only one of them.
 */
export async function startWithConfig<S extends Settings, T>(
  { settings, dependent, files = [] }: RoleSettings<S>,
  env: Environment,
  start: (config: ConfigOf<S>) => Promise<T>,
): Promise<T> {
  const { values, problems } = parseAll(settings, env, dependent)
  try {
    if (problems.length > 0) throw new ConfigError(problems)
    return await start(values as ConfigOf<S>)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const checks = files.filter(({ names }) => names.every((name) => name in values))
    const found = await Promise.all(checks.map((check) => findWithinDeadline(check, values)))
    throw new ConfigError([...new Set([...error.problems, ...found.flat()])])
  }
}

async function findWithinDeadline(
  { names, findProblems }: FileSettings,
  values: Parsed['values'],
): Promise<readonly string[]> {
  const seconds = CHECKS_MS_MAX / 1000
  const timeout = () =>
    new ConfigError([`Cannot read the files of ${names.join(', ')} within ${seconds} s`])
  return within(CHECKS_MS_MAX, findProblems(values), timeout).catch((error: unknown) => {
    if (error instanceof ConfigError) return error.problems
    return [`Cannot check the files of ${names.join(', ')}: ${messageOf(error)}`]
  })
}

function parseAll(
  settings: Settings,
  env: Environment,
  dependent: readonly DependentSettings[] = [],
): Parsed {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(settings)) {
    const secret = setting.secret ?? false
    try {
      const raw = rawValueOf(name, secret, env)
      const parsed = setting.schema.safeParse(raw)
      if (parsed.success) values[name] = parsed.data
      else if (raw === undefined) problems.push(`${name} is required: ${setting.allowed}`)
      else problems.push(problemLine(name, setting, raw))
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
    }
  }
  for (const { names, findProblems } of dependent) {
    if (names.every((name) => name in values)) problems.push(...findProblems(values))
  }
  return { values, problems }
}

function problemLine(name: string, setting: Setting<unknown>, raw: string): string {
  const shown = setting.secret === true ? 'hidden' : JSON.stringify(raw)
  return `${name} must be ${setting.allowed}: current value is ${shown}`
}

/** Renders the settings as aligned lines for `--help`. */
export function renderSettings(settings: Settings): string {
  const width = Math.max(...Object.keys(settings).map((name) => name.length))
  return Object.entries(settings)
    .map(([name, { about, allowed, fallback }]) =>
      [
        `  ${name.padEnd(width)}  ${about}`,
        `${' '.repeat(width + 4)}${allowed}; ${renderFallback(fallback)}`,
      ].join('\n'),
    )
    .join('\n')
}

const renderFallback = (fallback: string) =>
  fallback === 'required' ? fallback : `default: ${fallback}`
