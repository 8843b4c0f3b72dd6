// The values of a request that select a counter, as operators see them.
import assert from 'node:assert/strict'

const VALUE_CHARACTERS_MAX = 200

/** Splits length-prefixed values, and truncates long ones. */
export function splitValues(prefixed: string): string[] {
  const values: string[] = []
  for (let at = 0; at < prefixed.length;) {
    const colon = prefixed.indexOf(':', at)
    const end = colon + 1 + Number(prefixed.slice(at, colon))
    assert(end > at && end <= prefixed.length, 'Cannot split values that are not length-prefixed')
    const value = prefixed.slice(colon + 1, Math.min(end, colon + 1 + VALUE_CHARACTERS_MAX))
    values.push(Buffer.from(value).toString()) // a slice would retain the request's bytes
    at = end
  }
  return values
}
