// Rate limits by client address or API key: checked before the work, reported in response headers,
// and enforced with 429. Refers to rules only by name.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientLimits, ClientVerdict, LimitedClient } from '../limiter/decide/client-limits.ts'
import { resetAtOf, type ReportedLimit } from '../limits/verdict.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Problem } from './problem.ts'

/** The verdict on a request. */
export interface Limited {
  /** Values of the three headers; `undefined`: no limit applies. */
  readonly headers:
    { readonly limit: string; readonly remaining: string; readonly reset: string } | undefined
  /** The 429; `undefined`: the request is admitted. */
  readonly problem: Problem | undefined
}

/** The limits that the routes apply. */
export interface RequestLimits {
  /** Counts a create request; `apiKeyName` is the name of the client's API key, if it has one. */
  onCreate(req: IncomingMessage, apiKeyName?: string): Limited
  /** Counts a report of abuse. */
  onReport(req: IncomingMessage): Limited
  /** Counts a lookup. */
  onLookup(req: IncomingMessage, nowMs: number): Limited
  /** Counts a lookup of an unknown code. */
  onMiss(req: IncomingMessage): void
}

const unlimited: Limited = { headers: undefined, problem: undefined }

/** No limits at all. */
export const noLimits: RequestLimits = {
  onCreate: () => unlimited,
  onReport: () => unlimited,
  onLookup: () => unlimited,
  onMiss: () => undefined,
}

/** Limits by client. */
export function createRequestLimits(deps: {
  readonly limits: ClientLimits
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'requestsLimited'>
}): RequestLimits {
  const { limits, nowMs, metrics } = deps
  // Reading the address and planning its counters happen once per connection.
  const clients = new WeakMap<Socket, LimitedClient>()
  const clientOf = ({ socket }: IncomingMessage): LimitedClient => {
    const cached = clients.get(socket)
    if (cached !== undefined) return cached
    const client = limits.clientOf(socket.remoteAddress ?? '')
    clients.set(socket, client)
    return client
  }
  const renderLimit = createRenderer()
  const renderReset = createRenderer()
  const limitedOf = ({ admitted, reported }: ClientVerdict, atMs: number): Limited => {
    if (reported === undefined) return unlimited
    const headers = {
      limit: renderLimit(reported.limit),
      remaining: String(reported.remaining),
      reset: renderReset(resetAtOf(reported, atMs)),
    }
    if (admitted) return { headers, problem: undefined }
    metrics.requestsLimited.inc({ rule: reported.rule })
    return { headers, problem: rateLimited(reported) }
  }
  return {
    onCreate: (req, keyName) => limitedOf(limits.countCreate(clientOf(req), keyName), nowMs()),
    onReport: (req) => limitedOf(limits.countReport(clientOf(req)), nowMs()),
    onLookup: (req, atMs) => limitedOf(limits.countLookup(clientOf(req)), atMs),
    onMiss(req) {
      limits.countMiss(clientOf(req))
    },
  }
}

/** Renders numbers and caches the last one: a limit and its reset rarely change. */
function createRenderer(): (value: number) => string {
  let last = Number.NaN
  let rendered = ''
  return (value) => {
    if (value !== last) {
      last = value
      rendered = String(value)
    }
    return rendered
  }
}

/** The problem for a call that a limit denies. */
export function rateLimited({ rule, retryAfterSeconds }: ReportedLimit): Problem {
  const wait = String(retryAfterSeconds)
  return {
    name: 'rate-limited',
    detail: `The limit ${rule} is used up: retry in ${wait} s`,
    members: { rule },
    headers: { 'Retry-After': wait },
  }
}

/** Sets the headers on a response whose own headers are not written yet. */
export function setLimitHeaders(res: ServerResponse, limited: Limited): void {
  if (limited.headers === undefined) return
  const { limit, remaining, reset } = limited.headers
  res.setHeader('X-RateLimit-Limit', limit)
  res.setHeader('X-RateLimit-Remaining', remaining)
  res.setHeader('X-RateLimit-Reset', reset)
}

/** Appends the headers to alternating names and values, as `writeHead` takes them. */
export function addLimitHeaders(headers: string[], limited: Limited): void {
  if (limited.headers === undefined) return
  const { limit, remaining, reset } = limited.headers
  headers.push('X-RateLimit-Limit', limit, 'X-RateLimit-Remaining', remaining)
  headers.push('X-RateLimit-Reset', reset)
}
