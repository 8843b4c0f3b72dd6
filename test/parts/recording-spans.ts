// Makes spans into a list, for tests of what makes them; every request with a `traceparent` is
// traced, and what is asked of others is of the request under way, if there is one.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { OpenSpan, SpanFacts, Spans, SpanStart } from '../../src/telemetry/spans.ts'

/** What became of a span. */
export interface Recorded {
  name: string
  facts: SpanFacts
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
  const begin = ({ name, facts }: SpanStart): OpenSpan => {
    const entry: Recorded = { name, facts, within: under.getStore()?.name, isEnded: false }
    recorded.push(entry)
    const span: OpenSpan = {
      note(more, renamed = entry.name) {
        entry.facts = { ...entry.facts, ...more }
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
    wants: (traceparent) => traceparent !== undefined,
    serve: (_caller, start) => begin(start),
    within(span, work) {
      const entry = spanOf.get(span)
      return entry === undefined ? work() : under.run(entry, work)
    },
    ask: (start) => (under.getStore() === undefined ? undefined : begin(start())),
    idsNow: () => undefined,
  }
}
