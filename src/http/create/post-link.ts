// POST /v1/urls: parse, create, render.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ClientKeys } from '../../create/client-keys.ts'
import type { CreateOutcome, CreateRequest } from '../../create/create-link.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type Problem, sendProblem } from '../problem.ts'
import { invalidRequest } from '../field-faults.ts'
import { bodyTooLarge, jsonType, parseJson, readBody } from '../read-body.ts'
import {
  addLimitHeaders,
  type Limited,
  type RequestLimits,
  setLimitHeaders,
} from '../limit-requests.ts'
import { admitCreate, type Admission } from './admit-create.ts'
import { type CreateBody, type createBodySchema, parseCreateBody } from './create-request.ts'

/** Dependencies of the create routes. */
export interface CreateRouteDeps {
  readonly baseUrl: string
  readonly schema: ReturnType<typeof createBodySchema>
  readonly create: (request: CreateRequest) => Promise<CreateOutcome>
  /** Whether a target is blocked; counts blocked targets. */
  readonly isBlocked: (longUrl: string) => boolean
  readonly keys: ClientKeys
  readonly limits: RequestLimits
  readonly metrics: Pick<Metrics, 'creates'>
}

/** A created link, as the API returns it. */
export interface CreatedLink {
  readonly shortUrl: string
  /** RFC 3339 in UTC with milliseconds; `null` = never expires. */
  readonly expiresAt: string | null
  readonly replayed: boolean
}

const idempotencyKeySyntax = /^[\x21-\x7e]{1,255}$/

/** The handler of the route. */
export function postLink(deps: CreateRouteDeps) {
  return async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const admission = admitCreate(deps, req)
    const { limited } = admission
    try {
      const result = await createFromRequest(deps, { req, res, admission })
      if (result === 'aborted') return
      if (!('problem' in result)) {
        sendCreated(res, result, limited)
        return
      }
      setLimitHeaders(res, limited)
      deps.metrics.creates.inc({ result: result.problem.name })
      sendProblem(res, result.problem, deps.baseUrl)
    } catch (error) {
      if (!res.headersSent) setLimitHeaders(res, limited)
      throw error
    }
  }
}

async function createFromRequest(
  deps: CreateRouteDeps,
  { req, res, admission }: { req: IncomingMessage; res: ServerResponse; admission: Admission },
): Promise<CreatedLink | { problem: Problem } | 'aborted'> {
  if ('problem' in admission) return admission
  if (!jsonType.test(req.headers['content-type'] ?? '') || isEncoded(req)) {
    const detail = `The Content-Type must be application/json, ${notEncoded}`
    return { problem: { name: 'unsupported-media-type', detail } }
  }
  const bytes = await readBody(req, res)
  if (bytes === 'aborted') return bytes
  if (bytes === 'too-large') return { problem: bodyTooLarge }
  const parsed = parseRequest(deps, req, bytes)
  if ('problem' in parsed) return parsed
  return createAndRender(deps, { ...parsed.request, creatorId: admission.creatorId })
}

function sendCreated(
  res: ServerResponse,
  { shortUrl, expiresAt, replayed }: CreatedLink,
  limited: Limited,
): void {
  const body = JSON.stringify({ short_url: shortUrl, expires_at: expiresAt })
  const headers = ['Content-Type', 'application/json; charset=utf-8', 'Cache-Control', 'no-store']
  headers.push('Location', shortUrl, 'Content-Length', String(body.length)) // the body is ASCII
  if (replayed) headers.push('Idempotency-Replayed', 'true')
  addLimitHeaders(headers, limited)
  res.writeHead(201, headers)
  res.end(body, 'latin1') // the same bytes, but faster to write than UTF-8
}

/** Creates the link and renders the outcome for the API. */
export async function createAndRender(
  deps: CreateRouteDeps,
  request: CreateRequest,
): Promise<CreatedLink | { problem: Problem }> {
  if (deps.isBlocked(request.longUrl)) return { problem: targetBlocked }
  const outcome = await deps.create(request)
  if (outcome.kind !== 'created') return { problem: problemOf(outcome.kind, request) }
  const { link, replayed } = outcome
  deps.metrics.creates.inc({ result: replayed ? 'replayed' : 'created' })
  return {
    shortUrl: `${deps.baseUrl}/${link.code}`,
    expiresAt: link.expiresAtMs === null ? null : new Date(link.expiresAtMs).toISOString(),
    replayed,
  }
}

/** Converts a validated body to the members of the use case's request. */
export function requestOf(body: CreateBody) {
  const { long_url: longUrl, custom_alias: alias, ttl_days: ttlDays, ...others } = body
  others satisfies Record<string, never> // a new member does not compile until it is used here
  return { longUrl, alias: alias ?? undefined, ttlDays: ttlDays ?? undefined }
}

const targetBlocked: Problem = {
  name: 'target-blocked',
  detail: 'The operator of this service blocks the target of long_url',
}

function parseRequest(
  deps: CreateRouteDeps,
  req: IncomingMessage,
  bytes: Buffer,
): { request: Omit<CreateRequest, 'creatorId'> } | { problem: Problem } {
  const value = parseJson(bytes)
  if ('problem' in value) return value
  const parsed = parseCreateBody(deps.schema, value.json)
  if ('problem' in parsed) return parsed
  const key = req.headers['idempotency-key']
  if (key !== undefined && (typeof key !== 'string' || !idempotencyKeySyntax.test(key))) {
    const detail = 'The header Idempotency-Key must have 1 to 255 visible ASCII characters'
    const fault = { pointer: '', code: 'invalid-idempotency-key', detail }
    return { problem: invalidRequest([fault]) }
  }
  return { request: { ...requestOf(parsed.body), idempotencyKey: key } }
}

/** Whether the body is encoded. It is then rejected: a small body may decompress to a large one. */
export function isEncoded({ headers }: IncomingMessage): boolean {
  const content = headers['content-encoding'] ?? 'identity'
  const transfer = headers['transfer-encoding'] ?? 'chunked'
  return content.toLowerCase() !== 'identity' || transfer.toLowerCase() !== 'chunked'
}

/** The encodings in the detail of a 415. */
export const notEncoded =
  'without a Content-Encoding, and with no Transfer-Encoding other than chunked'

function problemOf(
  kind: Exclude<CreateOutcome['kind'], 'created'>,
  request: CreateRequest,
): Problem {
  switch (kind) {
    case 'alias-taken':
      return {
        name: 'alias-taken',
        detail: `The alias ${request.alias ?? ''} is in use: choose another`,
      }
    case 'key-reused':
      return {
        name: 'idempotency-key-reused',
        detail:
          'The Idempotency-Key belongs to its first body for about a day: send that body, or use ' +
          'a new key',
      }
    case 'pool-empty':
      return {
        name: 'pool-empty',
        detail: 'No generated code is left: retry, or send a custom_alias',
      }
    case 'not-created':
    case 'outcome-unknown':
      return { name: 'store-unavailable', detail: unconfirmedDetail(kind, request) }
  }
}

/** With an Idempotency-Key, an earlier or a concurrent request may store the link. */
function unconfirmedDetail(
  kind: 'not-created' | 'outcome-unknown',
  { alias, idempotencyKey }: CreateRequest,
): string {
  if (idempotencyKey !== undefined) {
    const retry = 'retry with the same Idempotency-Key, which creates no second link'
    return `The store did not confirm the link: ${retry}`
  }
  if (kind === 'not-created') {
    return 'The store is unavailable, and the link was not stored: retry'
  }
  const aliasHint =
    alias === undefined ? '' : '; if the alias is taken then, this request may have taken it'
  return `It is unknown whether the link was stored: retry${aliasHint}`
}
