// Whether a look-up redirects. Unknown, expired, disabled and deleted give the same response.
import { isExpired } from './expiry.ts'
import type { Link } from './link.ts'

/** What a redirect needs of a link, and what the tiers of memory keep. */
export interface Target {
  readonly longUrl: string
  readonly expiresAtMs: number | null
}

/** The target of a link that redirects until it expires; `undefined` for all others. */
export function targetOf(link: Link | undefined): Target | undefined {
  if (link === undefined || link.longUrl === null) return undefined
  if (link.disabledAtMs !== null || link.deletedAtMs !== null) return undefined
  return { longUrl: link.longUrl, expiresAtMs: link.expiresAtMs }
}

/** The target to send a client to now, or `undefined`: there is no such link. */
export function decideRedirect(target: Target | undefined, nowMs: number): Target | undefined {
  return target === undefined || isExpired(target.expiresAtMs, nowMs) ? undefined : target
}
