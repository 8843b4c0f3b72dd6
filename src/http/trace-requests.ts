// The span of a traced request, from its headers to the end of its response, around its handler:
// the fast path or the app. While tracing is off, it adds nothing.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseCodePath } from '../links/alias.ts'
import { requestIdOf } from '../telemetry/request-id.ts'
import { type OpenSpan, type Spans, type SpanStart, installedSpans } from '../telemetry/spans.ts'

/** Handles a request. */
type RequestHandler = (req: IncomingMessage, res: ServerResponse) => void

/** The lowest status of a server error. */
const SERVER_ERROR_STATUS = 500

/** Wraps `handle` in a span for each request to trace. */
export function traceRequests(
  handle: RequestHandler,
  spans: Spans | undefined = installedSpans(),
): RequestHandler {
  if (spans === undefined) return handle
  return (req, res) => {
    const { traceparent } = req.headers
    const span = spans.shouldTrace(traceparent) ? startSpan(spans, req) : undefined
    if (span === undefined) {
      handle(req, res)
      return
    }
    res.once('close', () => {
      endSpan(span, req, res)
    })
    spans.runInSpan(span, () => {
      handle(req, res)
    })
  }
}

function startSpan(spans: Spans, req: IncomingMessage): OpenSpan | undefined {
  const { traceparent, tracestate } = req.headers
  return spans.startServerSpan({ traceparent, tracestate }, spanStartOf(req))
}

function spanStartOf(req: IncomingMessage): SpanStart {
  const method = req.method ?? ''
  return {
    name: method,
    attributes: {
      'http.request.method': method,
      'url.scheme': 'http',
      'url.path': pathOf(req),
      'network.protocol.version': req.httpVersion,
      'http.request.header.x-request-id': [requestIdOf(req)],
    },
  }
}

function endSpan(span: OpenSpan, req: IncomingMessage, res: ServerResponse): void {
  const { statusCode } = res
  const route = routeOf(req)
  const attributes = { 'http.response.status_code': statusCode }
  if (route === undefined) span.update(attributes)
  else span.update({ ...attributes, 'http.route': route }, `${req.method ?? ''} ${route}`)
  if (!res.writableFinished) span.fail('aborted')
  else if (statusCode >= SERVER_ERROR_STATUS) span.fail(String(statusCode))
  span.end()
}

/**
 * The pattern of the path. Express has it after a route has matched; a request to the fast path, or
 * one that is rejected before the app, has none.
 */
function routeOf(req: IncomingMessage & { route?: { path?: unknown } }): string | undefined {
  const { path } = req.route ?? {}
  if (typeof path === 'string') return path
  const requested = pathOf(req)
  if (requested === '/v1/urls') return requested
  return parseCodePath(requested) === undefined ? undefined : '/{code}'
}

function pathOf({ url = '' }: IncomingMessage): string {
  const queryAt = url.indexOf('?')
  return queryAt < 0 ? url : url.slice(0, queryAt)
}
