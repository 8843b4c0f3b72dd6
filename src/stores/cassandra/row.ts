// Columns of Cassandra's rows as values of ours. The schema fixes their types, so another type is
// a defect.
import assert from 'node:assert/strict'

/** A row by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>

/** Whether the LWT whose first row this is was applied. */
export function wasApplied(row: Row | undefined): boolean {
  return row?.['[applied]'] === true
}

/** A text that is not null. */
export function textOf(value: unknown): string {
  assert(typeof value === 'string', `a column should hold text: it holds ${typeof value}`)
  return value
}

/** A uuid as text; `null` where there is none. */
export function uuidOf(value: unknown): string | null {
  if (value == null) return null
  assert(typeof value === 'object', `a column should hold a uuid: it holds ${typeof value}`)
  return (value as { toString: () => string }).toString()
}

/** An int or bigint that is not null and that a number holds. */
export function integerOf(value: unknown): number {
  const number = typeof value === 'bigint' ? Number(value) : value
  assert(Number.isSafeInteger(number), `a column should hold an integer: it holds ${typeof value}`)
  return number as number
}

/** A timestamp in milliseconds; `null` where there is none. */
export function timeMsOf(value: unknown): number | null {
  if (value == null) return null
  assert(value instanceof Date, `a column should hold a time: it holds ${typeof value}`)
  return value.getTime()
}
