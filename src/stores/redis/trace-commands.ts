// The span of what a traced request asks of Redis: of each question for itself, also where the
// driver is sent one command for several. Keys are told to nobody: they hold codes and clients.
import { askWithin, type Spans, spansNow } from '../../telemetry/spans.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { Batches } from './batches.ts'
import type { LinkCacheCommands } from './link-cache.ts'

/** The commands of the link cache, each with a span where the request is traced. */
export function traceCommands<C extends LinkCacheCommands>(
  commands: C,
  spans: Spans | undefined = spansNow(),
): C {
  if (spans === undefined) return commands
  const ask = askerOf(spans)
  return {
    ...commands,
    get: (key) => ask('GET', () => commands.get(key)),
    putIfAbsent: (entry) => ask('SET', () => commands.putIfAbsent(entry)),
    replace: (entry) => ask('EVALSHA', () => commands.replace(entry)),
    del: (key) => ask('DEL', () => commands.del(key)),
  }
}

/** The charges of the limits, each call with a span where it is traced. */
export function traceBatches(batches: Batches, spans: Spans | undefined = spansNow()): Batches {
  if (spans === undefined) return batches
  const ask = askerOf(spans)
  return {
    add: (slot, call) =>
      ask('EVALSHA', () => batches.add(slot, call), { 'curtail.charges': call.length }),
  }
}

function askerOf(spans: Spans) {
  return <T>(name: string, ask: () => Promise<T>, more: Readonly<Record<string, number>> = {}) =>
    askWithin({
      spans,
      start: () => ({
        name,
        facts: { 'db.system.name': 'redis', 'db.operation.name': name, ...more },
      }),
      ask,
      failureOf: (error) => (error instanceof StoreError ? error.outcome : 'defect'),
    })
}
