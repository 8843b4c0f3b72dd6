// The seam between what is traced and what traces: rooms ask here whether tracing is on, once, as
// they are made. Where it is off there is nothing, and whoever asks does its work as if it had not.

/** What a span tells, by the names of OpenTelemetry's conventions. Never a key or a user's URL. */
export type SpanFacts = Readonly<Record<string, string | number | boolean | string[]>>

/** How a span comes about: its name and what is known at its begin. */
export interface SpanStart {
  readonly name: string
  readonly facts: SpanFacts
}

/** A span that is being recorded. */
export interface OpenSpan {
  /** Adds what has become known; `name` takes the place of the one before. */
  note(facts: SpanFacts, name?: string): void
  /** Says that it went wrong; `kind` is one of few words. */
  fail(kind: string): void
  end(): void
}

/** How a caller says of which trace its request is. */
export interface CallerTrace {
  /** The header `traceparent`, as it came. */
  readonly traceparent: string | string[] | undefined
  readonly tracestate?: string | string[] | undefined
}

/** What makes spans. */
export interface Spans {
  /** Whether a request with this `traceparent` is to be traced. */
  wants(traceparent: CallerTrace['traceparent']): boolean
  /** Begins the span of a request; undefined where it is not to be traced after all. */
  serve(caller: CallerTrace, start: SpanStart): OpenSpan | undefined
  /** Does work for the request of a span: what it asks of others is of the same trace. */
  within<T>(span: OpenSpan, work: () => T): T
  /** Begins the span of a question to another process; undefined in no traced request. */
  ask(start: () => SpanStart): OpenSpan | undefined
  /** The trace and span under way, as log lines name them; undefined in no traced request. */
  idsNow(): { readonly trace_id: string; readonly span_id: string } | undefined
}

let installed: Spans | undefined

/** Turns tracing on for all that is made after it; `undefined` turns it off. */
export function installSpans(spans: Spans | undefined): void {
  installed = spans
}

/** What makes spans; undefined where tracing is off. */
export function spansNow(): Spans | undefined {
  return installed
}

/** The word for an error in a span: the name of its class, or of what was thrown. */
function kindOfError(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}

/** A question to another process, and what its span tells. */
interface Asking<T> {
  readonly spans: Spans
  readonly start: () => SpanStart
  readonly ask: () => Promise<T>
  /** What the answer adds to the span. */
  readonly factsOf?: (answer: T) => SpanFacts
  /** @default the name of the error's class */
  readonly failureOf?: (error: unknown) => string
}

/** Asks another process within a span of its own, if the request under way is traced. */
export function askWithin<T>(asking: Asking<T>): Promise<T> {
  const span = asking.spans.ask(asking.start)
  return span === undefined ? asking.ask() : recordAnswer(span, asking)
}

async function recordAnswer<T>(
  span: OpenSpan,
  { ask, factsOf, failureOf = kindOfError }: Asking<T>,
): Promise<T> {
  try {
    const answer = await ask()
    if (factsOf !== undefined) span.note(factsOf(answer))
    return answer
  } catch (error) {
    span.fail(failureOf(error))
    throw error
  } finally {
    span.end()
  }
}
