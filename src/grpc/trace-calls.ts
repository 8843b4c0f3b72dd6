// Wraps a method in a span for each traced call. If tracing is disabled or the caller's trace is
// not sampled, the method is called directly.
import { type Spans, installedSpans } from '../telemetry/spans.ts'
import type { CallHeaders } from './call-headers.ts'
import { statusCodes } from './http2/status-codes.ts'
import type { UnaryMethod } from './unary-call.ts'

/** Status codes that are not failures of the service. */
const callerCodes: ReadonlySet<string> = new Set(['OK', 'INVALID_ARGUMENT', 'NOT_FOUND'])

/** Creates the function that returns the method to call, given the headers of the call. */
export function traceCalls(
  method: UnaryMethod,
  spans: Spans | undefined = installedSpans(),
): (headers: CallHeaders) => UnaryMethod {
  if (spans === undefined) return () => method
  return ({ path, traceparent }) => {
    if (!spans.shouldTrace(traceparent)) return method
    const name = path.slice(1)
    const [service = '', call = ''] = name.split('/')
    const attributes = { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': call }
    return async (message) => {
      const span = spans.startServerSpan({ traceparent }, { name, attributes })
      if (span === undefined) return method(message)
      try {
        const response = await spans.runInSpan(span, () => method(message))
        span.update({ 'rpc.grpc.status_code': statusCodes[response.code] })
        if (!callerCodes.has(response.code)) span.fail(response.code)
        return response
      } finally {
        span.end()
      }
    }
  }
}
