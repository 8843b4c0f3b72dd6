// The interface between the modules and OpenTelemetry. A module checks once, when it is created,
// whether tracing is on; while it is off nothing is installed and tracing costs nothing.

/** Span attributes by OpenTelemetry's semantic conventions. Never a key or a user's URL. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | string[]>>

/** The name and initial attributes of a span. */
export interface SpanStart {
  readonly name: string
  readonly attributes: SpanAttributes
}

/** A span that is being recorded. */
export interface OpenSpan {
  /** Adds attributes; `name` replaces the name. */
  update(attributes: SpanAttributes, name?: string): void
  /** Marks the span as failed; `kind` is one of a few values (`error.type`). */
  fail(kind: string): void
  end(): void
}

/** The W3C trace context headers of a request. */
export interface TraceHeaders {
  /** The header `traceparent`, as received. */
  readonly traceparent: string | string[] | undefined
  readonly tracestate?: string | string[] | undefined
}

/** Creates spans. */
export interface Spans {
  /** Whether to trace a request with this `traceparent`. */
  shouldTrace(traceparent: TraceHeaders['traceparent']): boolean
  /** Starts the span of a received request; undefined if the sampler drops it. */
  startServerSpan(headers: TraceHeaders, start: SpanStart): OpenSpan | undefined
  /** Runs `work` with `span` active: its calls to other processes are in the same trace. */
  runInSpan<T>(span: OpenSpan, work: () => T): T
  /** Starts the span of a call to another process; undefined outside a traced request. */
  startClientSpan(start: () => SpanStart): OpenSpan | undefined
  /** The ids of the active trace and span, for log lines; undefined outside a traced request. */
  currentIds(): { readonly trace_id: string; readonly span_id: string } | undefined
}

let installed: Spans | undefined

/** Turns tracing on for everything created afterwards; `undefined` turns it off. */
export function installSpans(spans: Spans | undefined): void {
  installed = spans
}

/** The installed spans; undefined while tracing is off. */
export function installedSpans(): Spans | undefined {
  return installed
}

/** A call to another process, and the data of its span. */
interface TracedCall<T> {
  readonly spans: Spans
  readonly start: () => SpanStart
  readonly call: () => Promise<T>
  /** Attributes that the result adds to the span. */
  readonly attributesOf?: (result: T) => SpanAttributes
  /** The `error.type`. @default the name of the error's class, or the type of the thrown value */
  readonly failureOf?: (error: unknown) => string
}

/** Calls another process within a span, if the current request is traced. */
export function callInSpan<T>(traced: TracedCall<T>): Promise<T> {
  const span = traced.spans.startClientSpan(traced.start)
  return span === undefined ? traced.call() : recordResult(span, traced)
}

async function recordResult<T>(
  span: OpenSpan,
  { call, attributesOf, failureOf }: TracedCall<T>,
): Promise<T> {
  try {
    const result = await call()
    if (attributesOf !== undefined) span.update(attributesOf(result))
    return result
  } catch (error) {
    span.fail(failureOf?.(error) ?? (error instanceof Error ? error.name : typeof error))
    throw error
  } finally {
    span.end()
  }
}
