// A link as it is stored, and the states that follow from it.
import { isExpired } from './expiry.ts'

/** A stored link. Times are milliseconds since the Unix epoch; `null` = absent. */
export interface Link {
  /** The only look-up key; up to 10 characters. */
  readonly code: string
  /** The target; `null` once an operator has deleted the link: the code stays reserved. */
  readonly longUrl: string | null
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  /** Reserved by the specification; nothing fills it yet. */
  readonly creatorId: bigint | null
  /** Who wrote the record: fresh for each request, so that an unknown outcome can be resolved. */
  readonly writerId: string
  readonly disabledAtMs: number | null
  readonly deletedAtMs: number | null
}

/** State of a link as operators see it. */
export type LinkState = 'active' | 'expired' | 'disabled' | 'deleted'

/** The state of `link` at `nowMs`. */
export function stateOf(link: Link, nowMs: number): LinkState {
  if (link.deletedAtMs !== null) return 'deleted'
  if (isExpired(link.expiresAtMs, nowMs)) return 'expired'
  return link.disabledAtMs === null ? 'active' : 'disabled'
}
