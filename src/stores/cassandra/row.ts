// Converts column values of Cassandra's rows. The schema fixes their types, so another type is a
// defect.
import assert from 'node:assert/strict'

/** A row: values by column name. */
export type Row = Readonly<Record<string, unknown>>

/** Whether an LWT was applied, by the first row of its result. */
export function wasApplied(row: Row | undefined): boolean {
  return row?.['[applied]'] === true
}

/** A non-null text value. */
export function stringOf(value: unknown): string {
  assert(typeof value === 'string', `a column must be text: it is a ${typeof value}`)
  return value
}

/** A uuid as a string, or `null`. */
export function uuidOf(value: unknown): string | null {
  if (value == null) return null
  assert(typeof value === 'object', `a column must be a uuid: it is a ${typeof value}`)
  return (value as { toString: () => string }).toString()
}

/** A non-null int or bigint within the range of safe integers. */
export function integerOf(value: unknown): number {
  const number = typeof value === 'bigint' ? Number(value) : value
  assert(Number.isSafeInteger(number), `a column must be an integer: it is a ${typeof value}`)
  return number as number
}

/** A timestamp in milliseconds since the Unix epoch, or `null`. */
export function timeMsOf(value: unknown): number | null {
  if (value == null) return null
  assert(value instanceof Date, `a column must be a time: it is a ${typeof value}`)
  return value.getTime()
}
