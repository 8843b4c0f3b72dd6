// A setting that is on or off, in the forms of Go's strconv.ParseBool, as envoyproxy/ratelimit
// takes them.
import { z } from 'zod'
import type { Setting } from './config.ts'

const on = ['true', '1', 't', 'T', 'TRUE', 'True'] as const
const off = ['false', '0', 'f', 'F', 'FALSE', 'False'] as const

/** A setting that is on or off. */
export function flagSetting(about: string, fallback: boolean): Setting<boolean> {
  return {
    about,
    allowed: 'true or false (or 1, t, T, TRUE, True, 0, f, F, FALSE, False)',
    fallback: String(fallback),
    schema: z
      .enum([...on, ...off])
      .optional()
      .transform((text) => (text === undefined ? fallback : on.some((word) => word === text))),
  }
}
