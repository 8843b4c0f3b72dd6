// Kinds of settings that Redis's need: texts that may be absent, and words of any case.
import { z } from 'zod'
import type { Setting } from '../../config/config.ts'

/** A text that may be absent. */
export function optionalText(about: string, secret = false): Setting<string | undefined> {
  return { about, allowed: 'a text', fallback: 'unset', schema: z.string().optional(), secret }
}

/** One of some words, in any case. */
export function wordSetting<const W extends string>(
  about: string,
  { words, fallback }: { readonly words: readonly W[]; readonly fallback: string },
): Setting<W | undefined> {
  const wordOf = (text: string) =>
    words.find((word) => word.toLowerCase() === text.trim().toLowerCase())
  return {
    about,
    allowed: `one of ${words.join(', ')}`,
    fallback,
    schema: z
      .string()
      .refine((text) => wordOf(text) !== undefined)
      .transform(wordOf)
      .optional(),
  }
}
