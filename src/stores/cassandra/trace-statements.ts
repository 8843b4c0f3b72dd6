// The span of a statement in a request that is traced: which statement, at which level, and how
// often the driver had to try. The values of a statement are told to nobody.
import { askWithin, type SpanFacts, type Spans, spansNow } from '../../telemetry/spans.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { StatementKind } from './statement-kinds.ts'

/** What the driver tells of a statement beside its rows. */
interface Told {
  readonly info?: {
    readonly speculativeExecutions?: number
    readonly triedHosts?: Readonly<Record<string, unknown>>
  }
}

/** Runs a statement. */
type Run<T> = (kind: StatementKind, cql: string, values?: readonly unknown[]) => Promise<T>

/** `run`, with a span for each statement of a request that is traced. */
export function traceStatements<T extends object>(
  run: Run<T>,
  spans: Spans | undefined = spansNow(),
): Run<T> {
  if (spans === undefined) return run
  return (kind, cql, values) =>
    askWithin({
      spans,
      start: () => startOf(kind, cql),
      ask: () => run(kind, cql, values),
      factsOf,
      failureOf: (error) => (error instanceof StoreError ? error.outcome : 'defect'),
    })
}

function startOf(kind: StatementKind, cql: string) {
  const summary = summaryOf(cql)
  const facts = {
    'db.system.name': 'cassandra',
    'db.query.text': cql.replace(/\s+/g, ' '),
    'db.query.summary': summary,
    'curtail.statement': kind,
  }
  return { name: summary, facts }
}

/** The first word and the table, such as `INSERT links`. */
function summaryOf(cql: string): string {
  const [, operation = ''] = /^\s*(\w+)/.exec(cql) ?? []
  const [, table] = /\b(?:FROM|INTO|UPDATE)\s+(\w+)/.exec(cql) ?? []
  return table === undefined ? operation : `${operation} ${table}`
}

/** More than one node tried is a retry; more than one execution a second read. */
function factsOf({ info = {} }: Told): SpanFacts {
  const { triedHosts, speculativeExecutions } = info
  return {
    'cassandra.speculative_execution.count': speculativeExecutions ?? 0,
    'curtail.cassandra.nodes_tried': Object.keys(triedHosts ?? {}).length,
  }
}
