// Links and codes for store tests: every call returns a unique code.
import type { Link } from '../../src/links/link.ts'

const run = Date.now().toString(36).slice(-4)
let count = 0

/** A code of up to 10 characters, unique also across test runs. */
export function freshCode(): string {
  count++
  return `${run}_${count.toString(36)}`
}

/** A link that redirects, with the fields of `change`. */
export function sampleLink(change: Partial<Link> = {}): Link {
  const code = change.code ?? freshCode()
  return {
    code,
    longUrl: `https://example.com/${code}`,
    createdAtMs: 1_790_000_000_123,
    expiresAtMs: null,
    creatorId: null,
    writerId: crypto.randomUUID(),
    disabledAtMs: null,
    deletedAtMs: null,
    ...change,
  }
}
