// Kinds of settings that several roles use.
import { z } from 'zod'
import type { Setting } from './config.ts'
import { logLevels } from '../telemetry/log.ts'

/** An integer within bounds. */
export function integerSetting(
  about: string,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): Setting<number> {
  return {
    about,
    allowed: `an integer from ${min} to ${max}`,
    fallback: String(fallback),
    schema: z
      .string()
      .regex(/^\d{1,9}$/)
      .transform(Number)
      .pipe(z.int().min(min).max(max))
      .optional()
      .transform((value) => value ?? fallback),
  }
}

/** A TCP port; 0 = any free one. */
export function portSetting(about: string, fallback: number): Setting<number> {
  return integerSetting(about, { min: 0, max: 65_535, fallback })
}

/** An optional string. */
export function stringSetting(about: string, fallback: string): Setting<string> {
  return {
    about,
    allowed: 'a string',
    fallback: fallback === '' ? 'none' : fallback,
    schema: z
      .string()
      .optional()
      .transform((value) => value ?? fallback),
  }
}

/** LOG_LEVEL, a setting of every role. */
export const logLevelSetting: Setting<(typeof logLevels)[number]> = {
  about: 'minimum level of the JSON lines on stdout',
  allowed: `one of ${logLevels.join(', ')}`,
  fallback: 'info',
  schema: z
    .enum(logLevels)
    .optional()
    .transform((value) => value ?? 'info'),
}
