// GET and HEAD /{code}: one lookup, one decision, one response, without a framework. Read-only.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LinkFinder } from '../../resolve/find-link.ts'
import { parseCodePath } from '../../links/alias.ts'
import { decideRedirect, type Target } from '../../links/decide-redirect.ts'
import type { Clock } from '../../resilience/deadline.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { requestIdOf } from '../../telemetry/request-id.ts'
import { StoreError } from '../../resilience/store-error.ts'
import {
  addLimitHeaders,
  type Limited,
  type RequestLimits,
  setLimitHeaders,
} from '../limit-requests.ts'
import { type BlockedStatus, sendBlocked, sendNotFound } from '../not-found.ts'
import { type Problem, sendProblem } from '../problem.ts'
import type { FastPath } from '../serve.ts'

/** Dependencies of the redirect route. */
export interface RedirectDeps {
  readonly finder: Pick<LinkFinder, 'find'>
  readonly limits: RequestLimits
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'requestSeconds'>
  readonly log: Log
  readonly baseUrl: string
  readonly redirectStatus: 301 | 302
  /** Whether a target is blocked; counts blocked targets. */
  readonly isBlocked: (target: Target) => boolean
  readonly blockedStatus: BlockedStatus
  /** One-segment paths that are pages, not codes. */
  readonly servedPaths: ReadonlySet<string>
}

/** Longest time that a client may cache a 301. */
const PERMANENT_SECONDS_MAX = 300

/** The fast path before the app: it handles every path that can be a code and is not a page. */
export function createRedirectFastPath(deps: RedirectDeps): FastPath {
  const { finder, limits, nowMs } = deps
  const responder = createResponder(deps)
  return (req, res) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return false
    const startedMs = performance.now()
    const path = pathOf(req.url ?? '')
    const code = parseCodePath(path)
    if (code === undefined || deps.servedPaths.has(path)) return false
    const receivedMs = nowMs()
    const exchange: Exchange = { req, res, startedMs, limited: limits.onLookup(req, receivedMs) }
    if (exchange.limited.problem !== undefined) {
      responder.reject(exchange, exchange.limited.problem)
      return true
    }
    const found = finder.find(code, receivedMs)
    if (found instanceof Promise) {
      found
        .then((target) => {
          responder.respond(exchange, target, nowMs())
        })
        .catch((error: unknown) => {
          responder.fail(exchange, error)
        })
      return true
    }
    try {
      responder.respond(exchange, found, receivedMs)
    } catch (error) {
      responder.fail(exchange, error)
    }
    return true
  }
}

/** Sends the responses for the outcomes of a lookup. */
function createResponder(deps: RedirectDeps) {
  const { limits, metrics, log, baseUrl, redirectStatus, isBlocked, blockedStatus } = deps
  const seconds = (status: number) => metrics.requestSeconds.labels('code', String(status))
  const redirected = seconds(redirectStatus)
  const notFound = seconds(404)
  const send = ({ res, startedMs, limited }: Exchange, problem: Problem) => {
    setLimitHeaders(res, limited)
    sendProblem(res, problem, baseUrl)
    seconds(res.statusCode).observe((performance.now() - startedMs) / 1000)
  }
  return {
    /** Redirects, or responds with 404, or with the status for blocked targets. */
    respond(exchange: Exchange, target: Target | undefined, atMs: number) {
      const { req, res, startedMs } = exchange
      const destination = decideRedirect(target, atMs)
      const blocked = destination !== undefined && isBlocked(destination)
      if (destination !== undefined && !blocked) {
        sendRedirect(exchange, { target: destination, status: redirectStatus, nowMs: atMs })
        redirected.observe((performance.now() - startedMs) / 1000)
        return
      }
      const isNotFound = !blocked || blockedStatus === 404
      if (isNotFound) limits.onMiss(req)
      setLimitHeaders(res, exchange.limited)
      if (blocked) sendBlocked(req, res, { baseUrl, status: blockedStatus })
      else sendNotFound(req, res, baseUrl)
      const counted = isNotFound ? notFound : seconds(blockedStatus)
      counted.observe((performance.now() - startedMs) / 1000)
    },
    reject: send,
    fail(exchange: Exchange, error: unknown) {
      const { res } = exchange
      if (res.headersSent) {
        log.error({ err: error }, 'response aborted')
        res.destroy()
        return
      }
      if (error instanceof StoreError) {
        // The store counts and logs its errors: a log line per request would only add load.
        send(exchange, { name: 'store-unavailable', detail: 'The store is unavailable: retry' })
        return
      }
      send(exchange, { name: 'internal', detail: 'The lookup failed' })
      log.error({ err: error, requestId: requestIdOf(exchange.req) }, 'redirect failed')
    },
  }
}

interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly startedMs: number
  readonly limited: Limited
}

function pathOf(url: string): string {
  const queryAt = url.indexOf('?')
  return queryAt < 0 ? url : url.slice(0, queryAt)
}

function sendRedirect(
  { req, res, limited }: Exchange,
  redirect: { target: Target; status: 301 | 302; nowMs: number },
): void {
  const { longUrl } = redirect.target
  const body = `Redirecting to ${longUrl}\n`
  const headers = [
    'Location',
    longUrl,
    'Cache-Control',
    redirect.status === 302
      ? 'private, no-store'
      : permanentCaching(redirect.target, redirect.nowMs),
    'Content-Type',
    'text/plain; charset=utf-8',
    'Content-Length',
    String(body.length), // a target is visible ASCII: one byte per character
    'X-Robots-Tag',
    'noindex',
    'Referrer-Policy',
    'no-referrer-when-downgrade',
  ]
  addLimitHeaders(headers, limited)
  res.writeHead(redirect.status, headers)
  if (req.method === 'HEAD') res.end()
  else res.end(body, 'latin1') // the same bytes, but faster to write than UTF-8
}

function permanentCaching({ expiresAtMs }: Target, nowMs: number): string {
  const remaining =
    expiresAtMs === null ? PERMANENT_SECONDS_MAX : Math.floor((expiresAtMs - nowMs) / 1000)
  return `private, max-age=${Math.min(PERMANENT_SECONDS_MAX, remaining)}`
}
