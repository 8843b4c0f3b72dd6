// The span of a request that is to be traced, from its head to the end of its answer, around
// whatever answers it: a lane or the app. Where tracing is off it is not there at all.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseCodePath } from '../links/alias.ts'
import { requestIdFrom } from '../telemetry/request-id.ts'
import { type OpenSpan, type Spans, type SpanStart, spansNow } from '../telemetry/spans.ts'

/** Answers a request. */
type Answering = (req: IncomingMessage, res: ServerResponse) => void

/** From this status on the fault is ours. */
const FAULT_STATUS = 500

/** `answer`, with a span for each request that is to be traced. */
export function traceRequests(answer: Answering, spans: Spans | undefined = spansNow()): Answering {
  if (spans === undefined) return answer
  return (req, res) => {
    const { traceparent } = req.headers
    const span = spans.wants(traceparent) ? beginSpan(spans, req) : undefined
    if (span === undefined) {
      answer(req, res)
      return
    }
    res.once('close', () => {
      endSpan(span, req, res)
    })
    spans.within(span, () => {
      answer(req, res)
    })
  }
}

function beginSpan(spans: Spans, req: IncomingMessage): OpenSpan | undefined {
  const { traceparent, tracestate } = req.headers
  return spans.serve({ traceparent, tracestate }, startOf(req))
}

function startOf(req: IncomingMessage): SpanStart {
  const method = req.method ?? ''
  const id = requestIdFrom(req.headers['x-request-id'])
  req.headers['x-request-id'] = id // one made here is the answer's too
  return {
    name: method,
    facts: {
      'http.request.method': method,
      'url.scheme': 'http',
      'url.path': pathOf(req),
      'network.protocol.version': req.httpVersion,
      'http.request.header.x-request-id': [id],
    },
  }
}

function endSpan(span: OpenSpan, req: IncomingMessage, res: ServerResponse): void {
  const { statusCode } = res
  const route = routeOf(req)
  const facts = { 'http.response.status_code': statusCode }
  if (route === undefined) span.note(facts)
  else span.note({ ...facts, 'http.route': route }, `${req.method ?? ''} ${route}`)
  if (!res.writableFinished) span.fail('aborted')
  else if (statusCode >= FAULT_STATUS) span.fail(String(statusCode))
  span.end()
}

/** The pattern of the path: Express tells its own, and lanes answer creates and codes. */
function routeOf(req: IncomingMessage & { route?: { path?: unknown } }): string | undefined {
  const { path } = req.route ?? {}
  if (typeof path === 'string') return path
  const asked = pathOf(req)
  if (asked === '/v1/urls') return asked
  return parseCodePath(asked) === undefined ? undefined : '/{code}'
}

function pathOf({ url = '' }: IncomingMessage): string {
  const queryAt = url.indexOf('?')
  return queryAt < 0 ? url : url.slice(0, queryAt)
}
