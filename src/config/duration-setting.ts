// A setting that is a duration in Go's syntax: `24h`, `1h30m`, `1.5s`, `300ms`.
import * as z from 'zod'
import { type Setting, withDefault } from './config.ts'

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

const FIRST_COMPONENT = /^[+-]?(\d+(\.\d*)?|\.\d+)(ns|[uµμ]s|ms|s|m|h)/
const COMPONENT = /(\d+(?:\.\d*)?|\.\d+)(ns|[uµμ]s|ms|s|m|h)/y

/** The (fractional) milliseconds of a duration such as `1h30m`; `undefined` if it is invalid. */
export function parseDuration(duration: string): number | undefined {
  if (/^[+-]?0$/.test(duration)) return 0
  if (!FIRST_COMPONENT.test(duration)) return undefined
  const isNegative = duration.startsWith('-')
  let at = /^[+-]/.test(duration) ? 1 : 0
  let ms = 0
  while (at < duration.length) {
    COMPONENT.lastIndex = at
    const [whole = '', amount = '', unit = ''] = COMPONENT.exec(duration) ?? []
    if (whole === '') return undefined
    ms += Number(amount) * (msOfUnit[unit] ?? NaN)
    at += whole.length
  }
  return isNegative ? -ms : ms
}

/** A duration within bounds, in milliseconds; displayed in Go's syntax. */
export function durationSetting(
  about: string,
  bounds: { readonly min: string; readonly max: string; readonly fallback: string },
): Setting<number> {
  const { min, max, fallback: shown } = bounds
  const [minMs = NaN, maxMs = NaN, fallback = NaN] = [min, max, shown].map(parseDuration)
  const allowed = `a duration such as 1h30m or 500ms, from ${min} to ${max}`
  const schema = z.string().transform(parseDuration).pipe(z.number().min(minMs).max(maxMs))
  return withDefault({ about, allowed, fallback, shown, schema })
}
