// Reads a role's configuration from the environment: every value checked, every fault listed at
// once, one line each. Knows no setting itself; each role declares its own.
import { readFileSync } from 'node:fs'
import type { z } from 'zod'

/** One setting: how its text becomes a value, and what `--help` and the documentation say of it. */
export interface Setting<T> {
  /** Turns the text of the environment, or `undefined`, into the value. */
  readonly schema: z.ZodType<T, string | undefined>
  /** One sentence of what is allowed, such as `an integer from 0 to 65535`. */
  readonly allowed: string
  /** What holds where the setting is absent, as shown to people. */
  readonly fallback: string
  /** What the setting is for. */
  readonly about: string
  /** A secret is never echoed, and may come from the file that `NAME_FILE` names. */
  readonly secret?: boolean
}

/** The settings of one role by their environment names. */
export type Settings = Readonly<Record<string, Setting<unknown>>>

/** The values that belong to `S`. */
export type ConfigOf<S extends Settings> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never
}

/** The process environment, or what a test puts in its place. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Every fault of a configuration, a line each; main.ts prints them and ends with exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

/** What some settings must be together, where each of them alone is well. */
export interface Together {
  readonly names: readonly string[]
  /** What is wrong with these values by name, a sentence each. */
  readonly faultsOf: (values: Readonly<Record<string, unknown>>) => readonly string[]
}

/** Ties `settings` by what is wrong with their values together, a sentence each. */
export function together<S extends Settings>(
  settings: S,
  faultsOf: (config: ConfigOf<S>) => readonly string[],
): Together {
  return {
    names: Object.keys(settings),
    faultsOf: (values) => faultsOf(values as ConfigOf<S>),
  }
}

/** The text of a setting; an empty variable counts as absent. Throws a sentence. */
function textOf(name: string, secret: boolean, env: Environment): string | undefined {
  const given = (key: string) => (env[key] === '' ? undefined : env[key])
  const text = given(name)
  const file = secret ? given(`${name}_FILE`) : undefined
  if (file === undefined) return text
  if (text !== undefined) throw new Error(`${name} and ${name}_FILE are both set: choose one`)
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw new Error(`${name}_FILE must name a readable file: current value is ${file}`)
  }
}

/** Reads `settings` from `env`. Throws ConfigError with every fault, of each and of those tied. */
export function parseConfig<S extends Settings>(
  settings: S,
  env: Environment,
  tied: readonly Together[] = [],
): ConfigOf<S> {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(settings)) {
    const secret = setting.secret ?? false
    try {
      const text = textOf(name, secret, env)
      const parsed = setting.schema.safeParse(text)
      if (parsed.success) values[name] = parsed.data
      else if (text === undefined) faults.push(`${name} is required: ${setting.allowed}`)
      else faults.push(faultLine(name, setting, text))
    } catch (error) {
      faults.push((error as Error).message)
    }
  }
  for (const { names, faultsOf } of tied) {
    if (names.every((name) => name in values)) faults.push(...faultsOf(values))
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return values as ConfigOf<S>
}

function faultLine(name: string, setting: Setting<unknown>, text: string): string {
  const shown = setting.secret === true ? 'hidden' : JSON.stringify(text)
  return `${name} must be ${setting.allowed}: current value is ${shown}`
}

/** The settings as aligned lines for `--help`. */
export function renderSettings(settings: Settings): string {
  const width = Math.max(...Object.keys(settings).map((name) => name.length))
  return Object.entries(settings)
    .map(([name, { about, allowed, fallback }]) =>
      [
        `  ${name.padEnd(width)}  ${about}`,
        `${' '.repeat(width + 4)}${allowed}; default: ${fallback}`,
      ].join('\n'),
    )
    .join('\n')
}
