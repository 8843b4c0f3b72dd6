// POST /v1/urls: parse, create, render.
import type { Request, Response } from 'express'
import type { CreateOutcome, CreateRequest } from '../../shorten/create-link.ts'
import type { Metrics } from '../../process/metrics.ts'
import { type Problem, sendProblem } from '../problem.ts'
import { BODY_BYTES_MAX, readBody } from '../read-body.ts'
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
  readonly metrics: Pick<Metrics, 'creates'>
}

/** A link that was created, as its client sees it. */
export interface CreatedLink {
  readonly shortUrl: string
  /** RFC 3339 in UTC with milliseconds; `null` = no end. */
  readonly expiresAt: string | null
  readonly replayed: boolean
}

const jsonType = /^application\/json[\t ]*(;|$)/i
const keyShape = /^[\x21-\x7e]{1,255}$/

/** The handler of the route. */
export function postLink(deps: CreateRouteDeps) {
  return async (req: Request, res: Response): Promise<void> => {
    const parsed = await parseRequest(deps, req)
    if (parsed === 'aborted') return
    const answer = 'problem' in parsed ? parsed : await createdLink(deps, parsed.request)
    if ('problem' in answer) {
      deps.metrics.creates.inc({ outcome: answer.problem.name })
      sendProblem(res, answer.problem, deps.baseUrl)
      return
    }
    const body = JSON.stringify({ short_url: answer.shortUrl, expires_at: answer.expiresAt })
    res.writeHead(201, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      Location: answer.shortUrl,
      'Cache-Control': 'no-store',
      ...(answer.replayed && { 'Idempotency-Replayed': 'true' }),
    })
    res.end(body)
  }
}

/** Creates the link and puts the outcome into the words of the API. */
export async function createdLink(
  deps: CreateRouteDeps,
  request: CreateRequest,
): Promise<CreatedLink | { problem: Problem }> {
  const outcome = await deps.create(request)
  if (outcome.kind !== 'created') return { problem: problemOf(outcome.kind, request.alias) }
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

async function parseRequest(
  deps: CreateRouteDeps,
  req: Request,
): Promise<{ request: CreateRequest } | { problem: Problem } | 'aborted'> {
  if (!jsonType.test(req.headers['content-type'] ?? '') || isEncoded(req)) {
    const detail = 'The Content-Type must be application/json, without Content-Encoding'
    return { problem: { name: 'unsupported-media-type', detail } }
  }
  const bytes = await readBody(req)
  if (bytes === 'aborted') return 'aborted'
  if (bytes === 'too-large') return { problem: bodyTooLarge }
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
export function isEncoded(req: Request): boolean {
  return (req.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity'
}

function parseJson(bytes: Buffer): { json: unknown } | { problem: Problem } {
  try {
    return { json: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown }
  } catch {
    return { problem: { name: 'malformed-json', detail: 'The body must be JSON in UTF-8' } }
  }
}

function problemOf(
  kind: Exclude<CreateOutcome['kind'], 'created'>,
  alias: string | undefined,
): Problem {
  switch (kind) {
    case 'alias-taken':
      return { name: 'alias-taken', detail: `The alias ${alias ?? ''} is in use: choose another` }
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
      return {
        name: 'store-unavailable',
        detail: 'The outcome could not be learnt: repeat the request with the same Idempotency-Key',
      }
  }
}
