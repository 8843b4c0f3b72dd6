// Creates a link: claims a code of the pool or the client's alias, and reports the link as created
// only after the claim is confirmed. With an Idempotency-Key it first stores the intent (the link
// to create), and any request with the same key and body completes that intent.
import { createHash, randomUUID } from 'node:crypto'
import { expiryOf } from '../links/expiry.ts'
import type { Intent, IntentStore } from '../links/intent-store.ts'
import type { Link } from '../links/link.ts'
import type { Clock } from '../resilience/deadline.ts'
import { createDeadlineQueue } from '../resilience/deadline-queue.ts'
import type { FailedOutcome } from '../resilience/store-error.ts'
import { claimCode, type ClaimDeps } from './claim-code.ts'
import type { CodeSupply, SuppliedCode } from './code-supply.ts'
import { resultOrOutcome, createRetries } from '../resilience/retry-until-deadline.ts'

/** A validated request to create a link. */
export interface CreateRequest {
  readonly longUrl: string
  readonly alias: string | undefined
  readonly ttlDays: number | undefined
  /** `null`: the client has no API key. */
  readonly creatorId: bigint | null
  /** Each creator has its own set of these keys; clients without an API key share one set. */
  readonly idempotencyKey: string | undefined
}

/**
 * Result of a create. `outcome-unknown`: the link may have been stored; a retry with the same
 * Idempotency-Key returns it, a retry without a key may create a second link. `alias-taken`,
 * `key-reused`, `pool-empty` and `not-created` mean that this request has stored no link.
 * `not-created`: the store is unavailable, no attempt succeeded by the deadline, or the intent's
 * link expired before it was stored. `replayed`: an earlier request stored the intent.
 */
export type CreateOutcome =
  | { readonly kind: 'created'; readonly link: Link; readonly replayed: boolean }
  | { readonly kind: 'outcome-unknown' }
  | { readonly kind: 'alias-taken' | 'key-reused' | 'pool-empty' | 'not-created' }

/** Dependencies of a create. */
export interface CreateDeps extends ClaimDeps {
  /** Only for dates: a deadline would move when the system clock is set. */
  readonly nowMs: Clock
  readonly intents: IntentStore
  readonly supply: Pick<CodeSupply, 'take'>
  /**
   * Invalidates the cache entries of a code. Called after every claim unless the code was taken,
   * even if it is unknown whether the link was stored. The response waits for the promise, which
   * never rejects.
   */
  readonly invalidateCaches: (code: string) => Promise<void> | undefined
  /** Creates the id of a link's write; not of the process. @default randomUUID */
  readonly newWriterId?: () => string
}

/** Maximum response time in milliseconds, in any state of the store; documented as 3 s. */
export const CREATE_MS_MAX = 2800

/** Codes to try: an alias may have taken a code of the pool, but not this many in a row. */
const ATTEMPTS_MAX = 10

/** Dependencies of creates with a bounded response time. */
export interface BoundedCreateDeps extends CreateDeps {
  /** Whether the store is available; if not, a create fails immediately. @default always */
  readonly isStoreAvailable?: () => boolean
  /** Called with an error (a defect) that occurs after the response. */
  readonly onErrorAfterResponse: (error: unknown) => void
}

/**
 * Creates a function that creates links and responds within CREATE_MS_MAX. A create that is still
 * in flight at that time is not cancelled: it completes, without further retries, so that it
 * invalidates the caches.
 */
export function createBoundedCreate(
  deps: BoundedCreateDeps,
): (request: CreateRequest) => Promise<CreateOutcome> {
  const { isStoreAvailable = () => true, onErrorAfterResponse } = deps
  const deadlines = createDeadlineQueue(CREATE_MS_MAX, deps.monotonicMs)
  return (request) =>
    new Promise((resolve, reject) => {
      if (!isStoreAvailable()) {
        resolve({ kind: 'not-created' })
        return
      }
      const waiting = deadlines.add(() => {
        resolve({ kind: 'outcome-unknown' })
      })
      createLink(deps, request).then(
        (outcome) => {
          deadlines.remove(waiting)
          resolve(outcome)
        },
        (error: unknown) => {
          if (deadlines.remove(waiting))
            reject(error instanceof Error ? error : new Error(String(error)))
          else onErrorAfterResponse(error)
        },
      )
    })
}

/** Creates a link. Retries stop at the deadline; a few more store calls may follow. */
export function createLink(deps: CreateDeps, request: CreateRequest): Promise<CreateOutcome> {
  const deadlineMs = deps.monotonicMs() + CREATE_MS_MAX
  return request.idempotencyKey === undefined
    ? createWithoutKey(deps, request, deadlineMs)
    : createWithKey(deps, { request, key: request.idempotencyKey, deadlineMs })
}

async function createWithoutKey(
  deps: CreateDeps,
  request: CreateRequest,
  deadlineMs: number,
): Promise<CreateOutcome> {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    if (attempts > 0 && deps.monotonicMs() >= deadlineMs) break
    const supplying = codeFor(deps, request, deadlineMs)
    const supplied = supplying instanceof Promise ? await supplying : supplying
    if (supplied.kind !== 'code') return withoutCode(supplied.kind)
    const link = newLink(deps, request, supplied.code)
    const outcome = await claimCode(deps, link, deadlineMs)
    const invalidated = outcome === 'taken' ? undefined : deps.invalidateCaches(link.code)
    if (invalidated !== undefined) await invalidated // no microtask if there is nothing to await
    if (outcome === 'claimed') return { kind: 'created', link, replayed: false }
    if (outcome !== 'taken') return notClaimed(outcome)
    if (request.alias !== undefined) return { kind: 'alias-taken' }
  }
  return { kind: 'not-created' }
}

async function createWithKey(
  deps: CreateDeps,
  given: { request: CreateRequest; key: string; deadlineMs: number },
): Promise<CreateOutcome> {
  const { request, deadlineMs } = given
  const keyHash = keyHashOf(given.key, request.creatorId)
  const bodyHash = bodyHashOf(request)
  // Read before a code is obtained: a replay needs none, so an empty pool must not make it fail.
  const reads = createRetries(deadlineMs, deps)
  const found = await reads.run(() => deps.intents.readSerial(keyHash))
  if (found === 'failed') return { kind: 'not-created' }
  let intent: Intent | undefined = found
  let ownWriterId: string | undefined
  if (intent === undefined) {
    const supplied = await codeFor(deps, request, deadlineMs)
    if (supplied.kind !== 'code') return withoutCode(supplied.kind)
    const { code, writerId, createdAtMs, expiresAtMs } = newLink(deps, request, supplied.code)
    const own = { keyHash, bodyHash, code, writerId, createdAtMs, expiresAtMs }
    ownWriterId = writerId
    const insert = () => deps.intents.insertIfAbsent(own)
    intent = await writeIntent({ deps, keyHash, deadlineMs }, insert, (read) => read === undefined)
    if (intent === undefined) return { kind: 'not-created' }
  }
  if (intent.bodyHash !== bodyHash) return { kind: 'key-reused' }
  const { expiresAtMs } = intent
  if (expiresAtMs !== null && expiresAtMs <= deps.nowMs()) {
    return replayExpired(deps, given, intent)
  }
  const replayed = intent.writerId !== ownWriterId
  return completeIntent(deps, { request, intent, deadlineMs, replayed })
}

/** Claims the intent's code; if an alias has the code, moves the intent to another code. */
async function completeIntent(
  deps: CreateDeps,
  given: { request: CreateRequest; intent: Intent; deadlineMs: number; replayed: boolean },
): Promise<CreateOutcome> {
  const { request, deadlineMs, replayed } = given
  let intent = given.intent
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
    if (deps.monotonicMs() >= deadlineMs) return { kind: 'not-created' }
    const link = linkOf(intent, request)
    const outcome = await claimCode(deps, link, deadlineMs)
    const invalidated = outcome === 'taken' ? undefined : deps.invalidateCaches(link.code)
    if (invalidated !== undefined) await invalidated // no microtask if there is nothing to await
    if (outcome === 'claimed') return { kind: 'created', link, replayed }
    if (outcome !== 'taken') return notClaimed(outcome)
    if (request.alias !== undefined) return { kind: 'alias-taken' }
    const supplied = await deps.supply.take(deadlineMs)
    if (supplied.kind !== 'code') return withoutCode(supplied.kind)
    const change = { intent, to: supplied.code }
    const moved = await writeIntent(
      { deps, keyHash: intent.keyHash, deadlineMs },
      () => deps.intents.move(change),
      (read) => read?.code === change.intent.code,
    )
    if (moved?.bodyHash !== intent.bodyHash) return { kind: 'not-created' }
    intent = moved
  }
  return { kind: 'not-created' }
}

/**
 * Replays an intent whose link has expired: returns the link if it was stored, but stores none,
 * because it would already be expired. This affects only links with a lifetime of one day, because
 * an intent is kept for 25 hours. In this time its key must not create a second link; after that, a
 * retry is a new request.
 */
async function replayExpired(
  deps: CreateDeps,
  { request, deadlineMs }: { request: CreateRequest; deadlineMs: number },
  intent: Intent,
): Promise<CreateOutcome> {
  const reads = createRetries(deadlineMs, deps)
  const stored = await reads.run(() => deps.links.readSerial(intent.code))
  if (stored === 'failed' || stored === undefined) return { kind: 'not-created' }
  if (stored.writerId === intent.writerId) {
    return { kind: 'created', link: linkOf(intent, request), replayed: true }
  }
  return { kind: request.alias === undefined ? 'not-created' : 'alias-taken' }
}

/** The outcome of a create for which the supply has no code. */
function withoutCode(kind: Exclude<SuppliedCode['kind'], 'code'>): CreateOutcome {
  return { kind: kind === 'pool-empty' ? kind : 'not-created' }
}

function notClaimed(outcome: FailedOutcome): CreateOutcome {
  return { kind: outcome === 'unknown' ? 'outcome-unknown' : 'not-created' }
}

/**
 * Inserts or moves an intent; resolves to the stored intent, or `undefined` on failure. If the
 * outcome is unknown, re-reads the intent, and retries while `isUnchanged`.
 */
async function writeIntent(
  { deps, keyHash, deadlineMs }: { deps: CreateDeps; keyHash: string; deadlineMs: number },
  write: () => Promise<Intent | undefined>,
  isUnchanged: (read: Intent | undefined) => boolean,
): Promise<Intent | undefined> {
  const retries = createRetries(deadlineMs, deps)
  do {
    const stored = await resultOrOutcome(write())
    if (stored === 'not-done') return undefined // not retried, as in claimCode
    if (stored !== 'unknown') return stored
    const read = await retries.run(() => deps.intents.readSerial(keyHash))
    if (read === 'failed') return undefined
    if (!isUnchanged(read)) return read
  } while (await retries.wait())
  return undefined
}

function codeFor(deps: CreateDeps, request: CreateRequest, deadlineMs: number) {
  if (request.alias !== undefined) return { kind: 'code', code: request.alias } as const
  return deps.supply.take(deadlineMs)
}

function newLink(deps: CreateDeps, request: CreateRequest, code: string): Link {
  const createdAtMs = deps.nowMs()
  return linkOf(
    {
      code,
      writerId: (deps.newWriterId ?? randomUUID)(),
      createdAtMs,
      expiresAtMs: expiryOf(createdAtMs, request.ttlDays),
    },
    request,
  )
}

function linkOf(
  from: Pick<Intent, 'code' | 'writerId' | 'createdAtMs' | 'expiresAtMs'>,
  { longUrl, creatorId }: CreateRequest,
): Link {
  const { code, writerId, createdAtMs, expiresAtMs } = from
  return {
    code,
    longUrl,
    createdAtMs,
    expiresAtMs,
    creatorId,
    writerId,
    disabledAtMs: null,
    deletedAtMs: null,
  }
}

/**
 * The hash of the creator and the Idempotency-Key. An intent need not store its creator, because
 * every request that finds the intent has the same creator. A client without a creator
 * cannot send a key that equals `ID KEY` of a creator: no Idempotency-Key contains a space.
 */
function keyHashOf(key: string, creatorId: bigint | null): string {
  return sha256(creatorId === null ? key : `${creatorId} ${key}`)
}

/**
 * The hash of the validated body, not of its bytes. If a later version adds a member,
 * that member is hashed only if it is present, so that stored hashes stay valid after an upgrade.
 */
function bodyHashOf(request: CreateRequest): string {
  const { longUrl, alias = null, ttlDays = null, ...others } = request
  const laterMembers = Object.entries<unknown>(others).filter(
    ([name, value]) => name !== 'creatorId' && name !== 'idempotencyKey' && value !== undefined,
  )
  return sha256(JSON.stringify([longUrl, alias, ttlDays, ...laterMembers.sort()]))
}

function sha256(input: string): string {
  return createHash('sha256').update(input).digest('hex')
}
