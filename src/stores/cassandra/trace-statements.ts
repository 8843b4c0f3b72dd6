// Spans of statements in traced requests: the statement, its kind, and the driver's attempts. The
// values of a statement are never recorded.
import {
  callInSpan,
  type SpanAttributes,
  type Spans,
  installedSpans,
} from '../../telemetry/spans.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { StatementKind } from './statement-kinds.ts'

/** The execution info in the driver's result. */
interface ExecutionResult {
  readonly info?: {
    readonly speculativeExecutions?: number
    readonly triedHosts?: Readonly<Record<string, unknown>>
  }
}

/** Runs a statement. */
type RunStatement<T> = (kind: StatementKind, cql: string, values?: readonly unknown[]) => Promise<T>

/** Wraps `run` with a span for each statement of a traced request. */
export function traceStatements<T extends object>(
  run: RunStatement<T>,
  spans: Spans | undefined = installedSpans(),
): RunStatement<T> {
  if (spans === undefined) return run
  return (kind, cql, values) =>
    callInSpan({
      spans,
      start: () => startOf(kind, cql),
      call: () => run(kind, cql, values),
      attributesOf,
      failureOf: (error) => (error instanceof StoreError ? error.outcome : 'defect'),
    })
}

function startOf(kind: StatementKind, cql: string) {
  const summary = summaryOf(cql)
  const attributes = {
    'db.system.name': 'cassandra',
    'db.query.text': cql.replace(/\s+/g, ' '),
    'db.query.summary': summary,
    'curtail.statement': kind,
  }
  return { name: summary, attributes }
}

/** The operation and the table, such as `INSERT links`. */
function summaryOf(cql: string): string {
  const [, operation = ''] = /^\s*(\w+)/.exec(cql) ?? []
  const [, table] = /\b(?:FROM|INTO|UPDATE)\s+(\w+)/.exec(cql) ?? []
  return table === undefined ? operation : `${operation} ${table}`
}

/** More than one node tried means retries or speculative executions. */
function attributesOf({ info = {} }: ExecutionResult): SpanAttributes {
  const { triedHosts, speculativeExecutions } = info
  return {
    'cassandra.speculative_execution.count': speculativeExecutions ?? 0,
    'curtail.cassandra.nodes_tried': Object.keys(triedHosts ?? {}).length,
  }
}
