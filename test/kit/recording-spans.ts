// Records spans in a list, for tests of instrumented code. A request with a `traceparent` is
// sampled; client spans are children of the current request, and absent without one.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { OpenSpan, SpanAttributes, Spans, SpanStart } from '../../src/telemetry/spans.ts'

/** A recorded span. */
export interface Recorded {
  name: string
  attributes: SpanAttributes
  /** The name of its parent span. */
  readonly within: string | undefined
  failure?: string
  isClosed: boolean
}

/** Creates a recorder whose spans are in start order. */
export function recordSpans(): Spans & { readonly recorded: readonly Recorded[] } {
  const recorded: Recorded[] = []
  const current = new AsyncLocalStorage<Recorded>()
  const spanOf = new Map<OpenSpan, Recorded>()
  const start = ({ name, attributes }: SpanStart): OpenSpan => {
    const entry: Recorded = { name, attributes, within: current.getStore()?.name, isClosed: false }
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
        entry.isClosed = true
      },
    }
    spanOf.set(span, entry)
    return span
  }
  return {
    recorded,
    shouldTrace: (traceparent) => traceparent !== undefined,
    startServerSpan: (_caller, options) => start(options),
    runInSpan(span, work) {
      const entry = spanOf.get(span)
      return entry === undefined ? work() : current.run(entry, work)
    },
    startClientSpan: (options) => (current.getStore() === undefined ? undefined : start(options())),
    currentIds: () => undefined,
  }
}
