// Setting types for Redis: optional strings and case-insensitive keywords.
import { z } from 'zod'
import type { Setting } from '../../config/config.ts'

/** An optional string. */
export function optionalString(about: string, secret = false): Setting<string | undefined> {
  return { about, allowed: 'a string', fallback: 'unset', schema: z.string().optional(), secret }
}

/** One of several keywords, case-insensitive. */
export function keywordSetting<const W extends string>(
  about: string,
  { keywords, fallback }: { readonly keywords: readonly W[]; readonly fallback: string },
): Setting<W | undefined> {
  const keywordOf = (value: string) =>
    keywords.find((keyword) => keyword.toLowerCase() === value.trim().toLowerCase())
  return {
    about,
    allowed: `one of ${keywords.join(', ')}`,
    fallback,
    schema: z
      .string()
      .refine((value) => keywordOf(value) !== undefined)
      .transform(keywordOf)
      .optional(),
  }
}
