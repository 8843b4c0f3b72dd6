// Spans by OpenTelemetry. Loaded only where tracing is on. A request whose traceparent does not say
// that it is sampled is told so by two looks at a string, before anything is made.
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { CallerTrace, OpenSpan, SpanFacts, Spans } from './spans.ts'

/** Where the flags end in `00-TRACE-SPAN-FLAGS`, and what stands there: b, d and f are odd too. */
const LAST_DIGIT_AT = 54
const DIGIT_9 = 0x39
const DIGIT_F = 0x66

/** Makes them; `isSamplerAsked`: the sampler decides on requests that name no trace. */
export function createSpans({ isSamplerAsked }: { isSamplerAsked: boolean }): Spans {
  const tracer = trace.getTracer('curtail')
  return {
    wants: (traceparent) => (traceparent === undefined ? isSamplerAsked : isSampled(traceparent)),
    serve(caller, { name, facts }) {
      const parent = propagation.extract(ROOT_CONTEXT, caller)
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: facts }, parent)
      return span.isRecording() ? new RecordedSpan(span) : undefined
    },
    within(span, work) {
      if (!(span instanceof RecordedSpan)) return work()
      return context.with(trace.setSpan(ROOT_CONTEXT, span.span), work)
    },
    ask(start) {
      if (trace.getActiveSpan() === undefined) return undefined
      const { name, facts } = start()
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes: facts })
      return new RecordedSpan(span)
    },
    idsNow() {
      const ids = trace.getActiveSpan()?.spanContext()
      return ids === undefined ? undefined : { trace_id: ids.traceId, span_id: ids.spanId }
    },
  }
}

/** Whether the flags of a W3C traceparent say that the trace is sampled: the last bit of all. */
function isSampled(traceparent: CallerTrace['traceparent']): boolean {
  if (typeof traceparent !== 'string' || traceparent.length <= LAST_DIGIT_AT) return false
  const digit = traceparent.charCodeAt(LAST_DIGIT_AT)
  return digit <= DIGIT_9 ? (digit & 1) === 1 : digit <= DIGIT_F && (digit & 1) === 0
}

class RecordedSpan implements OpenSpan {
  readonly span: Span

  constructor(span: Span) {
    this.span = span
  }

  note(facts: SpanFacts, name?: string): void {
    if (name !== undefined) this.span.updateName(name)
    this.span.setAttributes(facts)
  }

  fail(kind: string): void {
    this.span.setAttribute('error.type', kind)
    this.span.setStatus({ code: SpanStatusCode.ERROR })
  }

  end(): void {
    this.span.end()
  }
}
