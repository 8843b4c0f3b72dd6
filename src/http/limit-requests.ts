// Limits of requests by the address of their client: asks before the work, says in headers what is
// left, and answers 429. Knows rules only by their names.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientLimits, ClientVerdict, LimitedClient } from '../limiter/decide/client-limits.ts'
import { resetAtOf, type Told } from '../limits/verdict.ts'
import type { Clock } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Problem } from './problem.ts'

/** Values of the three headers. */
interface LimitSaid {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

/** What a request was told. */
export interface Limited {
  readonly admitted: boolean
  /** What the headers say; `undefined`: no limit speaks. */
  readonly said: LimitSaid | undefined
  /** The 429, where the request is not admitted. */
  readonly problem: Problem | undefined
}

/** Limits as the routes use them. */
export interface RequestLimits {
  /** Charges a request that creates. */
  onCreate(req: IncomingMessage): Limited
  /** Charges a look-up of a code. */
  onLookup(req: IncomingMessage, nowMs: number): Limited
  /** Charges a look-up that found nothing. */
  onUnknown(req: IncomingMessage): void
}

const unlimited: Limited = { admitted: true, said: undefined, problem: undefined }

/** No limits at all. */
export const noLimits: RequestLimits = {
  onCreate: () => unlimited,
  onLookup: () => unlimited,
  onUnknown: () => undefined,
}

/** Limits by client. */
export function createRequestLimits(deps: {
  readonly limits: ClientLimits
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'requestsLimited'>
}): RequestLimits {
  const { limits, nowMs, metrics } = deps
  // An address is asked of the system and its charges are planned once a connection.
  const clients = new WeakMap<Socket, LimitedClient>()
  const clientOf = ({ socket }: IncomingMessage): LimitedClient => {
    const known = clients.get(socket)
    if (known !== undefined) return known
    const client = limits.clientOf(socket.remoteAddress ?? '')
    clients.set(socket, client)
    return client
  }
  const renderLimit = createRenderer()
  const renderReset = createRenderer()
  const sayOf = (told: Pick<Told, 'limit' | 'remaining' | 'resetUs'>, atMs: number) => ({
    limit: renderLimit(told.limit),
    remaining: String(told.remaining),
    reset: renderReset(resetAtOf(told, atMs)),
  })
  const limitedOf = ({ admitted, told }: ClientVerdict, atMs: number): Limited => {
    if (told === undefined) return unlimited
    const said = sayOf(told, atMs)
    if (admitted) return { admitted, said, problem: undefined }
    metrics.requestsLimited.inc({ rule: told.rule })
    return { admitted, said, problem: rateLimited(told) }
  }
  return {
    onCreate: (req) => limitedOf(limits.chargeCreate(clientOf(req)), nowMs()),
    onLookup(req, atMs) {
      const client = clientOf(req)
      const remaining = limits.takePaid(client, atMs)
      if (remaining < 0) return limitedOf(limits.chargeLookup(client, atMs), atMs)
      const { limit, resetUs } = client.advance
      const said = sayOf({ limit, remaining, resetUs }, atMs)
      return { admitted: true, said, problem: undefined }
    },
    onUnknown(req) {
      limits.chargeUnknown(clientOf(req))
    },
  }
}

/** Writes numbers, and remembers the last one: a limit and its reset are often the same again. */
function createRenderer(): (value: number) => string {
  let last = Number.NaN
  let text = ''
  return (value) => {
    if (value !== last) {
      last = value
      text = String(value)
    }
    return text
  }
}

/** The problem of a call that a limit has denied. */
export function rateLimited({ rule, retryAfterSeconds }: Told): Problem {
  const wait = String(retryAfterSeconds)
  return {
    name: 'rate-limited',
    detail: `The limit ${rule} is used up: try again in ${wait} s`,
    members: { rule },
    headers: { 'Retry-After': wait },
  }
}

/** Puts the headers on a response whose own headers are still to come. */
export function setLimitHeaders(res: ServerResponse, { said }: Limited): void {
  if (said === undefined) return
  res.setHeader('X-RateLimit-Limit', said.limit)
  res.setHeader('X-RateLimit-Remaining', said.remaining)
  res.setHeader('X-RateLimit-Reset', said.reset)
}

/** Adds the headers to names and values in turn, as `writeHead` takes them. */
export function addLimitHeaders(headers: string[], { said }: Limited): void {
  if (said === undefined) return
  const { limit, remaining, reset } = said
  headers.push('X-RateLimit-Limit', limit, 'X-RateLimit-Remaining', remaining)
  headers.push('X-RateLimit-Reset', reset)
}
