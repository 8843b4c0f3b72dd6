// Spans through OpenTelemetry; loaded only when tracing is on. The sampled flag of a traceparent is
// read with two string operations, so that unsampled requests create no objects.
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { TraceHeaders, OpenSpan, SpanAttributes, Spans } from './spans.ts'

/** Index of the last digit of the flags in `00-TRACE-SPAN-FLAGS`; hex b, d and f are odd too. */
const LAST_FLAG_DIGIT = 54
const DIGIT_9 = 0x39
const DIGIT_F = 0x66

/** Creates spans; `usesSampler`: the sampler decides on requests without a traceparent. */
export function createSpans({ usesSampler }: { usesSampler: boolean }): Spans {
  const tracer = trace.getTracer('curtail')
  return {
    shouldTrace: (traceparent) =>
      traceparent === undefined ? usesSampler : isSampled(traceparent),
    startServerSpan(headers, { name, attributes }) {
      const parent = propagation.extract(ROOT_CONTEXT, headers)
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent)
      return span.isRecording() ? new RecordedSpan(span) : undefined
    },
    runInSpan(span, work) {
      if (!(span instanceof RecordedSpan)) return work()
      return context.with(trace.setSpan(ROOT_CONTEXT, span.span), work)
    },
    startClientSpan(start) {
      if (trace.getActiveSpan() === undefined) return undefined
      const { name, attributes } = start()
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes })
      return new RecordedSpan(span)
    },
    currentIds() {
      const ids = trace.getActiveSpan()?.spanContext()
      return ids === undefined ? undefined : { trace_id: ids.traceId, span_id: ids.spanId }
    },
  }
}

/** Whether the sampled flag, the last bit of a W3C traceparent, is set. */
function isSampled(traceparent: TraceHeaders['traceparent']): boolean {
  if (typeof traceparent !== 'string' || traceparent.length <= LAST_FLAG_DIGIT) return false
  const digit = traceparent.charCodeAt(LAST_FLAG_DIGIT)
  return digit <= DIGIT_9 ? (digit & 1) === 1 : digit <= DIGIT_F && (digit & 1) === 0
}

class RecordedSpan implements OpenSpan {
  readonly span: Span

  constructor(span: Span) {
    this.span = span
  }

  update(attributes: SpanAttributes, name?: string): void {
    if (name !== undefined) this.span.updateName(name)
    this.span.setAttributes(attributes)
  }

  fail(kind: string): void {
    this.span.setAttribute('error.type', kind)
    this.span.setStatus({ code: SpanStatusCode.ERROR })
  }

  end(): void {
    this.span.end()
  }
}
