// Rows of an import, and importers on a store, for tests.
import { type ImportDeps, importLink } from '../../../src/transfer/import-link.ts'
import type { LinkRow } from '../../../src/transfer/link-row.ts'
import { createMemoryLinkStore } from '../stores/memory-link-store.ts'

/** The time of an importer, in milliseconds since the epoch. */
export const NOW_MS = 1_790_000_000_000
/** The creation time of a sample row. */
export const CREATED = '2026-01-31T12:00:00.000Z'
/** A time in the future. */
export const EXPIRES = '2099-12-31T23:59:59.000Z'
const DEADLINE_MS = 1000

/** A row with the fields of `change`. */
export function sampleRow(change: Partial<LinkRow> = {}): LinkRow {
  return {
    short_code: 'abc',
    long_url: 'https://example.com/',
    created_at: CREATED,
    expires_at: null,
    creator_id: null,
    state: 'active',
    ...change,
  }
}

/** An importer on a store; its clock advances with each pause. */
export function createImporter(
  links: ImportDeps['links'] = createMemoryLinkStore(),
  nowMs = NOW_MS,
) {
  const invalidated: string[] = []
  let monotonicMs = 0
  const deps: ImportDeps = {
    links,
    ownHosts: new Set(['own.test']),
    nowMs: () => nowMs,
    monotonicMs: () => monotonicMs,
    invalidateCaches(code) {
      invalidated.push(code)
      return Promise.resolve()
    },
    pause(ms) {
      monotonicMs += ms
      return Promise.resolve()
    },
  }
  return { deps, invalidated, run: (given: LinkRow) => importLink(deps, given, DEADLINE_MS) }
}

/** What the derived values of a row depend on. */
export const identityOf = (given: LinkRow) => ({
  shortCode: given.short_code,
  longUrl: given.long_url,
  createdAt: given.created_at,
  expiresAt: given.expires_at,
})
