// Records spans in a list, for tests of instrumented code; every request with a `traceparent` is
// traced, and client spans belong to the current request, if there is one.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { OpenSpan, SpanAttributes, Spans, SpanStart } from '../../src/telemetry/spans.ts'

/** A recorded span. */
export interface Recorded {
  name: string
  attributes: SpanAttributes
  /** The name of the span that it is in. */
  readonly within: string | undefined
  failure?: string
  isEnded: boolean
}

/** Spans in the order in which they began. */
export function recordSpans(): Spans & { readonly recorded: readonly Recorded[] } {
  const recorded: Recorded[] = []
  const under = new AsyncLocalStorage<Recorded>()
  const spanOf = new Map<OpenSpan, Recorded>()
  const begin = ({ name, attributes }: SpanStart): OpenSpan => {
    const entry: Recorded = { name, attributes, within: under.getStore()?.name, isEnded: false }
    recorded.push(entry)
    const span: OpenSpan = {
      update(more, renamed = entry.name) {
        entry.attributes = { ...entry.attributes, ...more }
        entry.name = renamed
      },
      fail: (kind) => {
        entry.failure = kind
      },
      end: () => {
        entry.isEnded = true
      },
    }
    spanOf.set(span, entry)
    return span
  }
  return {
    recorded,
    shouldTrace: (traceparent) => traceparent !== undefined,
    startServerSpan: (_caller, start) => begin(start),
    runInSpan(span, work) {
      const entry = spanOf.get(span)
      return entry === undefined ? work() : under.run(entry, work)
    },
    startClientSpan: (start) => (under.getStore() === undefined ? undefined : begin(start())),
    currentIds: () => undefined,
  }
}
