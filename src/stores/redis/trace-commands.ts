// Spans of a traced request's Redis commands: one per command of the request, even if several share
// one command on the wire. Keys are not recorded: they contain codes and clients' addresses.
import { callInSpan, type Spans, installedSpans } from '../../telemetry/spans.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { Batches } from './batches.ts'
import type { LinkCacheCommands } from './link-cache.ts'

/** Wraps the link cache's commands with a span each in a traced request. */
export function traceCommands<C extends LinkCacheCommands>(
  commands: C,
  spans: Spans | undefined = installedSpans(),
): C {
  if (spans === undefined) return commands
  const run = createTracer(spans)
  return {
    ...commands,
    get: (key) => run('GET', () => commands.get(key)),
    putIfAbsent: (entry) => run('SET', () => commands.putIfAbsent(entry)),
    replace: (entry) => run('EVALSHA', () => commands.replace(entry)),
    del: (key) => run('DEL', () => commands.del(key)),
  }
}

/** Wraps the counter store's calls with a span each in a traced request. */
export function traceBatches(
  batches: Batches,
  spans: Spans | undefined = installedSpans(),
): Batches {
  if (spans === undefined) return batches
  const run = createTracer(spans)
  return {
    add: (slot, call) =>
      run('EVALSHA', () => batches.add(slot, call), { 'curtail.counters': call.length }),
  }
}

function createTracer(spans: Spans) {
  return <T>(name: string, run: () => Promise<T>, extra: Readonly<Record<string, number>> = {}) =>
    callInSpan({
      spans,
      start: () => ({
        name,
        attributes: { 'db.system.name': 'redis', 'db.operation.name': name, ...extra },
      }),
      call: run,
      failureOf: (error) => (error instanceof StoreError ? error.outcome : 'defect'),
    })
}
