// A setting that is a time, in the form that Go programs take: `24h`, `1h30m`, `1.5s`, `300ms`.
import { z } from 'zod'
import type { Setting } from './config.ts'

const msOfUnit: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

const WHOLE = /^[+-]?(\d+(\.\d*)?|\.\d+)(ns|[uµμ]s|ms|s|m|h)/
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|[uµμ]s|ms|s|m|h)/y

/** Milliseconds of a time such as `1h30m`, with their fraction; `undefined` if it is none. */
export function parseDuration(text: string): number | undefined {
  if (/^[+-]?0$/.test(text)) return 0
  if (!WHOLE.test(text)) return undefined
  const isNegative = text.startsWith('-')
  let at = /^[+-]/.test(text) ? 1 : 0
  let ms = 0
  while (at < text.length) {
    PART.lastIndex = at
    const [whole = '', amount = '', unit = ''] = PART.exec(text) ?? []
    if (whole === '') return undefined
    ms += Number(amount) * (msOfUnit[unit] ?? NaN)
    at += whole.length
  }
  return isNegative ? -ms : ms
}

/** A time within bounds in milliseconds; what is shown to people is in Go's form. */
export function durationSetting(
  about: string,
  bounds: { readonly min: string; readonly max: string; readonly fallback: string },
): Setting<number> {
  const [min = NaN, max = NaN, fallback = NaN] = [bounds.min, bounds.max, bounds.fallback].map(
    parseDuration,
  )
  return {
    about,
    allowed: `a time such as 1h30m or 500ms, from ${bounds.min} to ${bounds.max}`,
    fallback: bounds.fallback,
    schema: z
      .string()
      .transform((text) => parseDuration(text))
      .pipe(z.number().min(min).max(max))
      .optional()
      .transform((ms) => ms ?? fallback),
  }
}
