// The admin API's format of a link, which `curtail export` writes and `curtail import` reads.
import { type Link, stateOf } from '../../links/link.ts'

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
}

/** Renders a link with its state at `nowMs`. */
export function renderLink(link: Link, nowMs: number): RenderedLink {
  const { code, longUrl, createdAtMs, expiresAtMs, creatorId } = link
  return {
    short_code: code,
    long_url: longUrl,
    created_at: timeOf(createdAtMs),
    expires_at: expiresAtMs === null ? null : timeOf(expiresAtMs),
    creator_id: creatorId === null ? null : String(creatorId),
    state: stateOf(link, nowMs),
  }
}

/** A page of links; `next` is the `after` of the next page, and `null` on the last page. */
export function renderPage(links: readonly Link[], max: number, nowMs: number) {
  return {
    links: links.map((link) => renderLink(link, nowMs)),
    next: links.length < max ? null : (links.at(-1)?.code ?? null),
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
