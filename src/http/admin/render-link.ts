// The admin API's format of a link, which `curtail export` writes and `curtail import` reads.
import { type Link, stateOf } from '../../links/link.ts'
import type { Clock } from '../../resilience/deadline.ts'

/** A link in the admin API's format. */
export interface RenderedLink {
  readonly short_code: string
  readonly long_url: string | null
  /** RFC 3339 in UTC, as is `expires_at`. */
  readonly created_at: string
  readonly expires_at: string | null
  /** Decimal: a 64-bit integer may exceed the numbers that JSON readers represent exactly. */
  readonly creator_id: string | null
  readonly state: string
  /** Absent if the link has no target, or the process has no entries of blocked targets. */
  readonly target_blocked?: boolean
}

/** What a rendered link depends on. */
export interface RenderDeps {
  readonly nowMs: Clock
  /** The list of blocked targets; `has` returns `undefined` if the process has no entries. */
  readonly blocked: { readonly has: (longUrl: string) => boolean | undefined }
}

/** Renders a link with its present state. */
export function renderLink(link: Link, { nowMs, blocked }: RenderDeps): RenderedLink {
  const { code, longUrl, createdAtMs, expiresAtMs, creatorId } = link
  const isBlocked = longUrl === null ? undefined : blocked.has(longUrl)
  return {
    short_code: code,
    long_url: longUrl,
    created_at: timeOf(createdAtMs),
    expires_at: expiresAtMs === null ? null : timeOf(expiresAtMs),
    creator_id: creatorId === null ? null : String(creatorId),
    state: stateOf(link, nowMs()),
    ...(isBlocked !== undefined && { target_blocked: isBlocked }),
  }
}

/** A page of links; `next` is the `after` of the next page, and `null` on the last page. */
export function renderPage(links: readonly Link[], max: number, deps: RenderDeps) {
  return {
    links: links.map((link) => renderLink(link, deps)),
    next: links.length < max ? null : (links.at(-1)?.code ?? null),
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
