// Kinds of settings that several roles use.
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { type Setting, withDefault } from './config.ts'
import { logLevels } from '../telemetry/log.ts'

interface NumberBounds {
  readonly min: number
  readonly max: number
  readonly fallback: number
}

/** An integer within bounds. */
export function integerSetting(about: string, bounds: NumberBounds): Setting<number> {
  const { min, max, fallback } = bounds
  const digits = z.string().regex(/^\d{1,9}$/)
  const schema = digits.transform(Number).pipe(z.int().min(min).max(max))
  return withDefault({ about, allowed: `an integer from ${min} to ${max}`, fallback, schema })
}

/** A decimal number within bounds. */
export function numberSetting(about: string, bounds: NumberBounds): Setting<number> {
  const { min, max, fallback } = bounds
  const decimal = z.string().regex(/^(\d{1,15}(\.\d{0,15})?|\.\d{1,15})$/)
  const schema = decimal.transform(Number).pipe(z.number().min(min).max(max))
  return withDefault({ about, allowed: `a number from ${min} to ${max}`, fallback, schema })
}

/** A TCP port; 0 = any free one. */
export function portSetting(about: string, fallback: number): Setting<number> {
  return integerSetting(about, { min: 0, max: 65_535, fallback })
}

/** A string with a default, which may be empty. */
export function stringSetting(about: string, fallback: string): Setting<string> {
  const shown = fallback === '' ? 'none' : fallback
  return withDefault({ about, allowed: 'a string', fallback, shown, schema: z.string() })
}

/** A string without a default: `undefined` if it is unset. */
export function optionalString(about: string, secret = false): Setting<string | undefined> {
  return { about, allowed: 'a string', fallback: 'unset', schema: z.string().optional(), secret }
}

const on = ['true', '1', 't', 'T', 'TRUE', 'True'] as const
const off = ['false', '0', 'f', 'F', 'FALSE', 'False'] as const

/** A boolean in the syntax of Go's strconv.ParseBool, as in envoyproxy/ratelimit. */
export function flagSetting(about: string, fallback: boolean): Setting<boolean> {
  return withDefault({
    about,
    allowed: 'true or false (or 1, t, T, TRUE, True, 0, f, F, FALSE, False)',
    fallback,
    schema: z.enum([...on, ...off]).transform((value) => on.some((keyword) => keyword === value)),
  })
}

/** LOG_LEVEL of the roles that log, except `ratelimit`, which allows more values. */
export const logLevelSetting = withDefault({
  about: 'minimum level of the JSON lines on stdout',
  allowed: `one of ${logLevels.join(', ')}`,
  fallback: 'info',
  schema: z.enum(logLevels),
})

const pem = z.string().includes('-----BEGIN ')

/** The contents of the file of the setting `name`; appends to `problems` if it is not PEM. */
export function readPem(name: string, file: string | undefined, problems: string[]) {
  if (file === undefined) return undefined
  try {
    return pem.parse(readFileSync(file, 'utf8'))
  } catch {
    problems.push(`${name} must name a readable file in PEM: current value is ${file}`)
    return undefined
  }
}
