// A boolean setting in the syntax of Go's strconv.ParseBool, as in envoyproxy/ratelimit.
import { z } from 'zod'
import type { Setting } from './config.ts'

const on = ['true', '1', 't', 'T', 'TRUE', 'True'] as const
const off = ['false', '0', 'f', 'F', 'FALSE', 'False'] as const

/** A boolean setting. */
export function flagSetting(about: string, fallback: boolean): Setting<boolean> {
  return {
    about,
    allowed: 'true or false (or 1, t, T, TRUE, True, 0, f, F, FALSE, False)',
    fallback: String(fallback),
    schema: z
      .enum([...on, ...off])
      .optional()
      .transform((value) =>
        value === undefined ? fallback : on.some((keyword) => keyword === value),
      ),
  }
}
