// A setting type for Redis: case-insensitive keywords.
import * as z from 'zod'
import type { Setting } from '../../config/config.ts'

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
