// POST /v1/urls: parse, create, render.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CreateOutcome, CreateRequest } from '../../create/create-link.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { requestIdFrom } from '../../telemetry/request-id.ts'
import { sendFailure } from '../failed-request.ts'
import { type Problem, sendProblem } from '../problem.ts'
import { BODY_BYTES_MAX, readBody } from '../read-body.ts'
import {
  addLimitHeaders,
  type Limited,
  type RequestLimits,
  setLimitHeaders,
} from '../limit-requests.ts'
import type { Lane } from '../serve.ts'
import {
  type CreateBody,
  type createBodySchema,
  invalidRequest,
  parseCreateBody,
} from './create-request.ts'

/** What creating over HTTP needs. */
export interface CreateRouteDeps {
  readonly baseUrl: string
  readonly schema: ReturnType<typeof createBodySchema>
  readonly create: (request: CreateRequest) => Promise<CreateOutcome>
  readonly limits: RequestLimits
  readonly metrics: Pick<Metrics, 'creates'>
}

/** What the lane needs besides. */
export interface PostLinkDeps extends CreateRouteDeps {
  readonly metrics: Pick<Metrics, 'creates' | 'requestSeconds'>
  readonly log: Log
}

/** The path of the route. */
export const POST_LINK_PATH = '/v1/urls'

/** A link that was created, as its client sees it. */
export interface CreatedLink {
  readonly shortUrl: string
  /** RFC 3339 in UTC with milliseconds; `null` = no end. */
  readonly expiresAt: string | null
  readonly replayed: boolean
}

const jsonType = /^application\/json[\t ]*(;|$)/i
const utf8 = new TextDecoder('utf-8', { fatal: true })
const keyShape = /^[\x21-\x7e]{1,255}$/

/** The lane that answers the route: creating is asked often enough to go without a framework. */
export function createPostLinkLane(deps: PostLinkDeps): Lane {
  const seconds = (status: number) => deps.metrics.requestSeconds.labels('urls', String(status))
  const created = seconds(201)
  const answer = async (
    req: IncomingMessage,
    res: ServerResponse,
    begunMs: number,
  ): Promise<void> => {
    const limited = deps.limits.onCreate(req)
    const answered = await answerRequest(deps, { req, res, limited })
    if (answered === 'aborted') return
    if ('problem' in answered) {
      deps.metrics.creates.inc({ outcome: answered.problem.name })
      setLimitHeaders(res, limited)
      res.setHeader('X-Request-Id', requestIdFrom(req.headers['x-request-id']))
      sendProblem(res, answered.problem, deps.baseUrl)
      seconds(res.statusCode).observe((performance.now() - begunMs) / 1000)
    } else {
      sendCreated(req, res, { link: answered, limited })
      created.observe((performance.now() - begunMs) / 1000)
    }
  }
  return (req, res) => {
    if (req.method !== 'POST' || !isRoute(req.url ?? '')) return false
    const begunMs = performance.now()
    answer(req, res, begunMs).catch((error: unknown) => {
      if (!res.headersSent) {
        res.setHeader('X-Request-Id', requestIdFrom(req.headers['x-request-id']))
      }
      sendFailure(deps, res, error)
      seconds(res.statusCode).observe((performance.now() - begunMs) / 1000)
    })
    return true
  }
}

function isRoute(url: string): boolean {
  return url === POST_LINK_PATH || url.startsWith(`${POST_LINK_PATH}?`)
}

async function answerRequest(
  deps: CreateRouteDeps,
  { req, res, limited }: { req: IncomingMessage; res: ServerResponse; limited: Limited },
): Promise<CreatedLink | { problem: Problem } | 'aborted'> {
  if (limited.problem !== undefined) return { problem: limited.problem }
  if (!jsonType.test(req.headers['content-type'] ?? '') || isEncoded(req)) {
    const detail = `The Content-Type must be application/json, ${notEncoded}`
    return { problem: { name: 'unsupported-media-type', detail } }
  }
  const bytes = await readBody(req, res)
  if (bytes === 'aborted') return bytes
  if (bytes === 'too-large') return { problem: bodyTooLarge }
  const parsed = parseRequest(deps, req, bytes)
  if ('problem' in parsed) return parsed
  return renderOutcome(deps, parsed.request, await deps.create(parsed.request))
}

function sendCreated(
  req: IncomingMessage,
  res: ServerResponse,
  { link, limited }: { link: CreatedLink; limited: Limited },
): void {
  const body = JSON.stringify({ short_url: link.shortUrl, expires_at: link.expiresAt })
  const headers = [
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Location',
    link.shortUrl,
    'Cache-Control',
    'no-store',
    'X-Request-Id',
    requestIdFrom(req.headers['x-request-id']),
  ]
  addLimitHeaders(headers, limited)
  if (link.replayed) headers.push('Idempotency-Replayed', 'true')
  res.writeHead(201, headers)
  res.end(body)
}

/** Creates the link and puts the outcome into the words of the API. */
export async function createdLink(
  deps: CreateRouteDeps,
  request: CreateRequest,
): Promise<CreatedLink | { problem: Problem }> {
  return renderOutcome(deps, request, await deps.create(request))
}

function renderOutcome(
  deps: CreateRouteDeps,
  request: CreateRequest,
  outcome: CreateOutcome,
): CreatedLink | { problem: Problem } {
  if (outcome.kind !== 'created') return { problem: problemOf(outcome.kind, request) }
  const { link, replayed } = outcome
  deps.metrics.creates.inc({ outcome: replayed ? 'replayed' : 'created' })
  return {
    shortUrl: `${deps.baseUrl}/${link.code}`,
    expiresAt: link.expiresAtMs === null ? null : new Date(link.expiresAtMs).toISOString(),
    replayed,
  }
}

/** A validated body as the use case takes it. */
export function requestOf(body: CreateBody, idempotencyKey: string | undefined): CreateRequest {
  return {
    longUrl: body.long_url,
    alias: body.custom_alias ?? undefined,
    ttlDays: body.ttl_days ?? undefined,
    idempotencyKey,
  }
}

/** The problem of a body over the bound. */
export const bodyTooLarge: Problem = {
  name: 'body-too-large',
  detail: `The body must have at most ${BODY_BYTES_MAX} bytes`,
}

function parseRequest(
  deps: CreateRouteDeps,
  req: IncomingMessage,
  bytes: Buffer,
): { request: CreateRequest } | { problem: Problem } {
  const value = parseJson(bytes)
  if ('problem' in value) return value
  const parsed = parseCreateBody(deps.schema, value.json)
  if ('problem' in parsed) return parsed
  const key = req.headers['idempotency-key']
  if (key !== undefined && (typeof key !== 'string' || !keyShape.test(key))) {
    const detail = 'The header Idempotency-Key must have 1 to 255 visible ASCII characters'
    return invalidRequest([{ pointer: '', code: 'invalid-idempotency-key', detail }])
  }
  return { request: requestOf(parsed.body, key) }
}

/** Whether the body is encoded; we decode none, as a small body may unfold to a large one. */
export function isEncoded({ headers }: IncomingMessage): boolean {
  const content = headers['content-encoding'] ?? 'identity'
  const transfer = headers['transfer-encoding'] ?? 'chunked'
  return content.toLowerCase() !== 'identity' || transfer.toLowerCase() !== 'chunked'
}

/** What a 415 says of encodings. */
export const notEncoded = 'without Content-Encoding, nor any Transfer-Encoding but chunked'

function parseJson(bytes: Buffer): { json: unknown } | { problem: Problem } {
  try {
    return { json: JSON.parse(utf8.decode(bytes)) as unknown }
  } catch {
    return { problem: { name: 'malformed-json', detail: 'The body must be JSON in UTF-8' } }
  }
}

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
        detail: 'This Idempotency-Key was used with another body within the last 24 hours',
      }
    case 'pool-empty':
      return {
        name: 'pool-empty',
        detail: 'No generated code is left: try again, or give a custom_alias',
      }
    case 'store-unavailable':
    case 'outcome-unknown':
      return { name: 'store-unavailable', detail: notStored(kind, request) }
  }
}

/** With a key an earlier request may have stored the link, or one beside this may yet. */
function notStored(
  kind: 'store-unavailable' | 'outcome-unknown',
  { alias, idempotencyKey }: CreateRequest,
): string {
  if (idempotencyKey !== undefined) {
    const same = 'try again with the same Idempotency-Key, which makes no second link'
    return `The store did not confirm the link: ${same}`
  }
  if (kind === 'store-unavailable') {
    return 'The store could not take the link, and nothing of it was stored: try again'
  }
  const perhapsYours = alias === undefined ? '' : '; if the alias is taken then, it may be yours'
  return `We cannot tell whether the link was stored: try again${perhapsYours}`
}
