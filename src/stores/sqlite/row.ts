// Typed values of SQLite columns. The schema is STRICT, so another type is a bug.
import assert from 'node:assert/strict'
import type { SQLOutputValue } from 'node:sqlite'

/** A row that a statement returns. */
export type Row = Record<string, SQLOutputValue>

/** A non-null TEXT column. */
export function stringOf(value: Row[string] | undefined): string {
  assert(typeof value === 'string', `a column must be text: it is a ${typeof value}`)
  return value
}

/** A non-null INTEGER column. */
export function integerOf(value: Row[string] | undefined): number {
  assert(typeof value === 'number', `a column must be an integer: it is a ${typeof value}`)
  return value
}

/** An INTEGER column that may be null. */
export function numberOf(value: Row[string] | undefined): number | null {
  return value === null ? null : integerOf(value)
}
