// Reads a role's configuration from the environment: checks every value and lists all problems
// together, one line each. Defines no settings; each role declares its own.
import { readFileSync } from 'node:fs'
import type { z } from 'zod'

/** One setting: how it is parsed, and how `--help` and the documentation describe it. */
export interface Setting<T> {
  /** Parses the string from the environment, or `undefined`. */
  readonly schema: z.ZodType<T, string | undefined>
  /** The allowed values, such as `an integer from 0 to 65535`. */
  readonly allowed: string
  /** The default, as displayed. */
  readonly fallback: string
  /** The purpose of the setting. */
  readonly about: string
  /** A secret is never displayed, and may come from the file in `NAME_FILE`. */
  readonly secret?: boolean
}

/** A setting with a default; `shown` is displayed instead of it. */
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

/** All problems of a configuration, one line each; main.ts prints them and exits with code 2. */
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

/** The raw value of a setting; an empty variable counts as absent. Throws the problem. */
function rawValueOf(name: string, secret: boolean, env: Environment): string | undefined {
  const valueOf = (key: string) => (env[key] === '' ? undefined : env[key])
  const raw = valueOf(name)
  const file = secret ? valueOf(`${name}_FILE`) : undefined
  if (file === undefined) return raw
  if (raw !== undefined) throw new Error(`${name} and ${name}_FILE are both set: remove one`)
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw new Error(`${name}_FILE must name a readable file: current value is ${file}`)
  }
}

/** Reads `settings` from `env`. Throws ConfigError with all problems. */
export function parseConfig<S extends Settings>(
  settings: S,
  env: Environment,
  dependent: readonly DependentSettings[] = [],
): ConfigOf<S> {
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
      problems.push((error as Error).message)
    }
  }
  for (const { names, findProblems } of dependent) {
    if (names.every((name) => name in values)) problems.push(...findProblems(values))
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return values as ConfigOf<S>
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
