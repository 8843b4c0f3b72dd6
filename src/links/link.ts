// A stored link, and its state.
import { isExpired } from './expiry.ts'

/** A stored link. Times are milliseconds since the Unix epoch; `null` = absent. */
export interface Link {
  /** The lookup key; at most 10 characters. */
  readonly code: string
  /** The target; `null` once an operator has deleted the link. The code stays taken. */
  readonly longUrl: string | null
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  /** The creator whose API key created the link; `null` if it was created without one. */
  readonly creatorId: bigint | null
  /** Identifies the write: unique for each request, so that an unknown outcome can be resolved. */
  readonly writerId: string
  readonly disabledAtMs: number | null
  readonly deletedAtMs: number | null
}

/** State of a link, as the admin API reports it. */
export type LinkState = 'active' | 'expired' | 'disabled' | 'deleted'

/** The state of `link` at `nowMs`. */
export function stateOf(link: Link, nowMs: number): LinkState {
  if (link.deletedAtMs !== null) return 'deleted'
  if (isExpired(link.expiresAtMs, nowMs)) return 'expired'
  return link.disabledAtMs === null ? 'active' : 'disabled'
}
