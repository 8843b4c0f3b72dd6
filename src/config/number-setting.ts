// A setting that is a decimal number.
import { z } from 'zod'
import type { Setting } from './config.ts'

/** A decimal number within bounds. */
export function numberSetting(
  about: string,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): Setting<number> {
  return {
    about,
    allowed: `a number from ${min} to ${max}`,
    fallback: String(fallback),
    schema: z
      .string()
      .regex(/^(\d{1,15}(\.\d{0,15})?|\.\d{1,15})$/)
      .transform(Number)
      .pipe(z.number().min(min).max(max))
      .optional()
      .transform((value) => value ?? fallback),
  }
}
