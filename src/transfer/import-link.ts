// Imports one row: decides which link it describes, and stores that link unless its code has one.
// A row can be imported any number of times: its write has an id that is derived from the row, so
// that a retry recognizes its own link. The state of any other link is never changed.
import { aliasFault } from '../links/alias.ts'
import { isExpired } from '../links/expiry.ts'
import type { Link } from '../links/link.ts'
import type { LinkStore } from '../links/link-store.ts'
import { parseTargetUrl, type TargetFault } from '../links/target-url.ts'
import type { Clock } from '../resilience/deadline.ts'
import { createRetries, type Retries, type RetryDeps } from '../resilience/retry-until-deadline.ts'
import { RejectedWriteError } from '../resilience/store-error.ts'
import { candidatesOf, type RowIdentity, writerIdOf } from './derive-codes.ts'
import type { ImportResult } from './import-result.ts'
import type { LinkRow } from './link-row.ts'

/** Dependencies of an import. */
export interface ImportDeps extends RetryDeps {
  readonly links: Pick<LinkStore, 'find' | 'insertIfAbsent' | 'readSerial'>
  /** The service's own hosts, to which no link may point. */
  readonly ownHosts: ReadonlySet<string>
  readonly nowMs: Clock
  readonly monotonicMs: Clock
  /**
   * Invalidates the positive and negative cache entries of a code. Called for every row whose link
   * is or may be stored; the result waits for the promise, which never rejects.
   */
  readonly invalidateCaches: (code: string) => Promise<void> | undefined
}

const targetFaults: Readonly<Record<TargetFault, string>> = {
  'too-long': 'long_url is too long',
  'surrounding-space': 'long_url starts or ends with white space',
  'not-absolute-http': 'long_url is not an absolute http:// or https:// URL',
  'not-a-url': 'long_url has no host or cannot be parsed',
  credentials: 'long_url contains a user name or password',
  'own-host': 'long_url points to this service',
}

/** The link of a row, whose code may have to be replaced; or why the row has none. */
type Decision =
  | { readonly link: Link; readonly identity: RowIdentity }
  | { readonly result: 'invalid' | 'expired'; readonly detail: string }

/** Imports a row. Retries stop at `deadlineMs`; the store call in flight then completes. */
export async function importLink(
  deps: ImportDeps,
  row: LinkRow,
  deadlineMs: number,
): Promise<ImportResult> {
  const { short_code } = row
  const decision = decide(deps, row)
  if ('result' in decision) return { short_code, code: null, ...decision }
  const { link, identity } = decision
  const retries = createRetries(deadlineMs, deps)
  for (const code of candidatesOf(identity)) {
    const isReplaced = code !== short_code
    const outcome = await store(deps, { ...link, code }, retries)
    if (outcome === 'failed') {
      const detail = 'the store has not confirmed it: retry'
      return { short_code, result: outcome, code: null, detail }
    }
    if (outcome instanceof RejectedWriteError) {
      return { short_code, result: 'invalid', code: null, detail: outcome.reason }
    }
    if (outcome !== 'taken') {
      const detail = isReplaced ? 'short_code is not allowed, and was replaced' : null
      return { short_code, result: outcome, code, detail }
    }
    if (!isReplaced) {
      const detail = 'short_code belongs to a different link, which is unchanged'
      return { short_code, result: 'conflict', code: null, detail }
    }
  }
  const detail = 'short_code is not allowed, and all codes that could replace it have other links'
  return { short_code, result: 'conflict', code: null, detail }
}

function decide(deps: ImportDeps, row: LinkRow): Decision {
  const nowMs = deps.nowMs()
  const { state, expires_at: expiresAt, created_at: createdAt } = row
  const isDeleted = state === 'deleted'
  const target = isDeleted ? { longUrl: null } : parseTargetUrl(row.long_url ?? '', deps.ownHosts)
  if ('fault' in target) return { result: 'invalid', detail: targetFaults[target.fault] }
  if (isDeleted && aliasFault(row.short_code) !== undefined) {
    return { result: 'invalid', detail: 'it is deleted, and its short_code is not allowed' }
  }
  const expiresAtMs = expiresAt === null ? null : Date.parse(expiresAt)
  if (!isDeleted && (state === 'expired' || isExpired(expiresAtMs, nowMs))) {
    return { result: 'expired', detail: `it expired at ${expiresAt ?? 'an unknown time'}` }
  }
  const { longUrl } = target
  const identity = { shortCode: row.short_code, longUrl, createdAt, expiresAt }
  const link: Link = {
    code: row.short_code,
    longUrl,
    createdAtMs: createdAt === null ? nowMs : Date.parse(createdAt),
    expiresAtMs,
    creatorId: row.creator_id === null ? null : BigInt(row.creator_id),
    writerId: writerIdOf(identity),
    disabledAtMs: state === 'disabled' ? nowMs : null,
    deletedAtMs: isDeleted ? nowMs : null,
  }
  return { link, identity }
}

type Outcome = 'created' | 'exists' | 'taken' | 'failed' | RejectedWriteError

/** Stores `link` if its code is free; `taken`: the code belongs to a different link. */
async function store(deps: ImportDeps, link: Link, retries: Retries): Promise<Outcome> {
  const { links } = deps
  let stored = await retries.run(() => links.find(link.code))
  if (stored === 'failed') return 'failed'
  if (stored === undefined) {
    const writerId = await retries.run(() => links.insertIfAbsent(link).catch(rejectionOf))
    const isRejected = writerId instanceof RejectedWriteError
    if (isRejected || writerId === link.writerId || writerId === 'failed') {
      await deps.invalidateCaches(link.code) // a failed attempt may have stored it
      return isRejected || writerId === 'failed' ? writerId : 'created'
    }
    stored = await retries.run(() => links.readSerial(link.code))
    if (stored === 'failed' || stored === undefined) return 'failed'
  }
  if (stored.writerId === link.writerId) {
    await deps.invalidateCaches(link.code) // the attempt that stored the link may have crashed
    return 'exists'
  }
  return isSame(stored, link) ? 'exists' : 'taken'
}

/** A permanent rejection is a result: it is not retried. */
function rejectionOf(error: unknown): RejectedWriteError {
  if (error instanceof RejectedWriteError) return error
  throw error
}

/** Whether a link of another writer redirects or is deleted exactly like the row's link. */
function isSame(stored: Link, link: Link): boolean {
  if (link.longUrl === null) return stored.deletedAtMs !== null
  const isDisabled = (each: Link) => each.disabledAtMs !== null
  return (
    stored.longUrl === link.longUrl &&
    stored.expiresAtMs === link.expiresAtMs &&
    isDisabled(stored) === isDisabled(link)
  )
}
