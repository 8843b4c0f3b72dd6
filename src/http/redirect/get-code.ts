// GET and HEAD /{code}: one look-up, one decision, one answer, without a framework. Never writes.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LinkFinder } from '../../resolve/find-link.ts'
import { parseCodePath } from '../../links/alias.ts'
import { decideRedirect, type Target } from '../../links/decide-redirect.ts'
import type { Clock } from '../../resilience/deadline.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { requestIdFrom } from '../../telemetry/request-id.ts'
import { StoreError } from '../../resilience/store-error.ts'
import {
  addLimitHeaders,
  type Limited,
  type RequestLimits,
  setLimitHeaders,
} from '../limit-requests.ts'
import { sendNotFound } from '../not-found.ts'
import { type Problem, sendProblem } from '../problem.ts'
import type { Lane } from '../serve.ts'

/** What redirecting needs. */
export interface RedirectDeps {
  readonly finder: Pick<LinkFinder, 'find'>
  readonly limits: RequestLimits
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'requestSeconds'>
  readonly log: Log
  readonly baseUrl: string
  readonly redirectStatus: 301 | 302
  /** Paths of one segment that are pages, not codes. */
  readonly servedPaths: ReadonlySet<string>
}

/** Longest time that a client may keep a 301. */
const PERMANENT_SECONDS_MAX = 300

/** The lane in front of the app: it answers every path that can be a code and is no page. */
export function createRedirectLane(deps: RedirectDeps): Lane {
  const { finder, limits, nowMs } = deps
  const answers = createAnswers(deps)
  return (req, res) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return false
    const begunMs = performance.now()
    const path = pathOf(req.url ?? '')
    const code = parseCodePath(path)
    if (code === undefined || deps.servedPaths.has(path)) return false
    const askedMs = nowMs()
    const exchange: Exchange = { req, res, begunMs, limited: limits.onLookup(req, askedMs) }
    if (exchange.limited.problem !== undefined) {
      answers.refuse(exchange, exchange.limited.problem)
      return true
    }
    const found = finder.find(code, askedMs)
    if (found instanceof Promise) {
      found
        .then((target) => {
          answers.tell(exchange, target, nowMs())
        })
        .catch((error: unknown) => {
          answers.fail(exchange, error)
        })
      return true
    }
    try {
      answers.tell(exchange, found, askedMs)
    } catch (error) {
      answers.fail(exchange, error)
    }
    return true
  }
}

/** What a look-up may come to. */
function createAnswers({ limits, metrics, log, baseUrl, redirectStatus }: RedirectDeps) {
  const seconds = (status: number) => metrics.requestSeconds.labels('code', String(status))
  const redirected = seconds(redirectStatus)
  const notFound = seconds(404)
  const send = ({ res, req, begunMs, limited }: Exchange, problem: Problem) => {
    setLimitHeaders(res, limited)
    res.setHeader('X-Request-Id', requestIdFrom(req.headers['x-request-id']))
    sendProblem(res, problem, baseUrl)
    seconds(res.statusCode).observe((performance.now() - begunMs) / 1000)
  }
  return {
    /** Redirects, or says that there is nothing. */
    tell(exchange: Exchange, target: Target | undefined, atMs: number) {
      const { req, res, begunMs } = exchange
      const requestId = requestIdFrom(req.headers['x-request-id'])
      const go = decideRedirect(target, atMs)
      if (go !== undefined) {
        sendRedirect(exchange, { target: go, requestId, status: redirectStatus, nowMs: atMs })
        redirected.observe((performance.now() - begunMs) / 1000)
        return
      }
      limits.onUnknown(req)
      setLimitHeaders(res, exchange.limited)
      res.setHeader('X-Request-Id', requestId)
      sendNotFound(req, res, baseUrl)
      notFound.observe((performance.now() - begunMs) / 1000)
    },
    refuse: send,
    fail(exchange: Exchange, error: unknown) {
      const { res } = exchange
      if (res.headersSent) {
        log.error({ err: error }, 'an answer broke off')
        res.destroy()
        return
      }
      if (error instanceof StoreError) {
        // Counted, and logged by the store itself: a line for each would be one more load.
        send(exchange, { name: 'store-unavailable', detail: 'The store did not answer' })
        return
      }
      send(exchange, { name: 'internal', detail: 'The look-up failed' })
      log.error({ err: error, requestId: res.getHeader('X-Request-Id') }, 'a look-up failed')
    },
  }
}

interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly begunMs: number
  readonly limited: Limited
}

function pathOf(url: string): string {
  const queryAt = url.indexOf('?')
  return queryAt < 0 ? url : url.slice(0, queryAt)
}

function sendRedirect(
  { req, res, limited }: Exchange,
  answer: { target: Target; requestId: string; status: 301 | 302; nowMs: number },
): void {
  const { longUrl } = answer.target
  const body = `Redirecting to ${longUrl}\n`
  const headers = [
    'Location',
    longUrl,
    'Cache-Control',
    answer.status === 302 ? 'private, no-store' : permanentCaching(answer.target, answer.nowMs),
    'Content-Type',
    'text/plain; charset=utf-8',
    'Content-Length',
    String(body.length), // a target is visible ASCII, so characters are bytes
    'X-Robots-Tag',
    'noindex',
    'Referrer-Policy',
    'no-referrer-when-downgrade',
    'X-Request-Id',
    answer.requestId,
  ]
  addLimitHeaders(headers, limited)
  res.writeHead(answer.status, headers)
  if (req.method === 'HEAD') res.end()
  else res.end(body, 'latin1') // the same bytes, and quicker to write than UTF-8
}

function permanentCaching({ expiresAtMs }: Target, nowMs: number): string {
  const left =
    expiresAtMs === null ? PERMANENT_SECONDS_MAX : Math.floor((expiresAtMs - nowMs) / 1000)
  return `private, max-age=${Math.min(PERMANENT_SECONDS_MAX, left)}`
}
