// Times of other programs, which write RFC 3339 with variations.
import * as z from 'zod'

const shape = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|([+-]\d\d):?(\d\d))?$/
const rfc3339 = z.iso.datetime({ offset: true })

/**
 * A time as RFC 3339 in UTC with milliseconds; `undefined` for another string. Also accepts a space
 * instead of the T, and an offset without colon; a time without offset is UTC.
 */
export function utcTimeOf(time: string): string | undefined {
  const [, date = '', clock = '', hours, minutes = ''] = shape.exec(time) ?? []
  const offset = hours === undefined ? 'Z' : `${hours}:${minutes}`
  const parsed = rfc3339.safeParse(`${date}T${clock}${offset}`)
  return parsed.success ? new Date(parsed.data).toISOString() : undefined
}
