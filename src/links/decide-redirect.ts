// Whether a lookup redirects. Unknown, expired, disabled and deleted codes have the same response.
import { isExpired } from './expiry.ts'
import type { Link } from './link.ts'

/** The fields of a link that a redirect uses, and the result of a check. */
export interface Target {
  readonly longUrl: string
  readonly expiresAtMs: number | null
  /** In memory only: the version of the list of blocked targets that last allowed the target. */
  allowedBy?: number | undefined
}

/**
 * The target, even if the link has expired; `undefined` if the link is unknown, disabled or
 * deleted.
 */
export function targetOf(link: Link | undefined): Target | undefined {
  if (link === undefined || link.longUrl === null) return undefined
  if (link.disabledAtMs !== null || link.deletedAtMs !== null) return undefined
  return { longUrl: link.longUrl, expiresAtMs: link.expiresAtMs }
}

/** The target of the redirect at `nowMs`; `undefined`: not found. */
export function decideRedirect(target: Target | undefined, nowMs: number): Target | undefined {
  return target === undefined || isExpired(target.expiresAtMs, nowMs) ? undefined : target
}
