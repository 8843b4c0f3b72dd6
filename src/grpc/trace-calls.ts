// The span of a call of gRPC that is to be traced, around the method that answers it. Where tracing
// is off, or the caller's trace is not sampled, the method stays as it is.
import { type Spans, spansNow } from '../telemetry/spans.ts'
import type { CallHead } from './call-head.ts'
import { statusCodes } from './http2/status-codes.ts'
import type { UnaryMethod } from './unary-call.ts'

/** Codes that are the caller's own fault. */
const callers: ReadonlySet<string> = new Set(['OK', 'INVALID_ARGUMENT', 'NOT_FOUND'])

/** Gives, for the head of each call, the method that answers it. */
export function traceCalls(
  method: UnaryMethod,
  spans: Spans | undefined = spansNow(),
): (head: CallHead) => UnaryMethod {
  if (spans === undefined) return () => method
  return ({ path, traceparent }) => {
    if (!spans.wants(traceparent)) return method
    const name = path.slice(1)
    const [service = '', call = ''] = name.split('/')
    const facts = { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': call }
    return async (message) => {
      const span = spans.serve({ traceparent }, { name, facts })
      if (span === undefined) return method(message)
      try {
        const answer = await spans.within(span, () => method(message))
        span.note({ 'rpc.grpc.status_code': statusCodes[answer.code] })
        if (!callers.has(answer.code)) span.fail(answer.code)
        return answer
      } finally {
        span.end()
      }
    }
  }
}
