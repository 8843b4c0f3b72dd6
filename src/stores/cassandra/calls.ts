// Runs statements on the driver's client: each within its deadline, each failure as StoreError,
// counted and now and then logged. Knows when none is under way.
import type { Client } from 'cassandra-driver'
import { within } from '../../process/deadline.ts'
import type { Log } from '../../process/log.ts'
import { StoreError } from '../../process/store-error.ts'
import type { CassandraMetrics } from './driver-metrics.ts'
import { failureOf } from './failed-outcome.ts'
import type { Row } from './row.ts'
import { type StatementKind, statementRuns } from './statement-kinds.ts'

/** Failures are counted in metrics; the log shows one in this time. */
const LOG_FAILURE_MS = 10_000

interface Answer {
  readonly rows: readonly Row[]
  readonly isSchemaAgreed: boolean
}

const NO_ROWS: readonly Row[] = []

/** Makes what runs statements while `isUp`. */
export function createCalls(given: {
  client: Client
  metrics: CassandraMetrics
  log: Pick<Log, 'warn'>
  isUp: () => boolean
}) {
  const { client, metrics, log, isUp } = given
  const tell = createFailureLog(log)
  let underWay = 0
  let onDrained: (() => void) | undefined
  const settled = () => {
    underWay--
    if (underWay === 0) onDrained?.()
  }
  const run = async (
    kind: StatementKind,
    cql: string,
    values: readonly unknown[] = [],
  ): Promise<Answer> => {
    const { options, deadlineMs, isWrite } = statementRuns[kind]
    if (!isUp()) throw new StoreError('Cassandra is not connected', { outcome: 'not-done' })
    const begunMs = performance.now()
    const observe = (outcome: string) => {
      const seconds = (performance.now() - begunMs) / 1000
      metrics.cassandraCallSeconds.labels(kind, outcome).observe(seconds)
    }
    underWay++
    const call = client.execute(cql, [...values], options)
    call.then(settled, settled)
    try {
      const late = () => new Error(`no answer within ${deadlineMs} ms`)
      const result = await within(deadlineMs, call, late)
      observe('ok')
      const rows = (result.rows as readonly Row[] | undefined) ?? NO_ROWS
      const info = result.info as { isSchemaInAgreement?: boolean } // the driver's types lack it
      return { rows, isSchemaAgreed: info.isSchemaInAgreement === true }
    } catch (cause) {
      const failure = failureOf(cause, isWrite)
      observe(failure)
      if (failure === 'defect') throw cause
      tell({ kind, failure, cause })
      throw new StoreError(`Cassandra did not answer (${kind})`, { outcome: failure, cause })
    }
  }
  return {
    run,
    async runOnEach(cql: string, localDc: string): Promise<readonly (readonly Row[])[]> {
      const hosts = client.hosts.values().filter((h) => h.datacenter === localDc && h.isUp())
      const { options } = statementRuns.scan
      const asked = hosts.map((host) => client.execute(cql, [], { ...options, host }))
      const answers = await Promise.allSettled(asked)
      return answers.map((answer) =>
        answer.status === 'fulfilled' ? (answer.value.rows as readonly Row[]) : NO_ROWS,
      )
    },
    /** Resolves once nothing is under way; every statement is bounded by the driver's time-outs. */
    drained: () =>
      underWay === 0
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            onDrained = resolve
          }),
  }
}

/** Logs a failure now and then, with how many were not. */
function createFailureLog(log: Pick<Log, 'warn'>) {
  let untold = 0
  let nextMs = -Infinity
  return ({ kind, failure, cause }: { kind: string; failure: string; cause: unknown }) => {
    const nowMs = performance.now()
    if (nowMs < nextMs) {
      untold++
      return
    }
    nextMs = nowMs + LOG_FAILURE_MS
    log.warn({ kind, outcome: failure, err: cause, untold }, 'Cassandra did not do a statement')
    untold = 0
  }
}

/** Prepares statements once there is a connection, so that no first reader waits for that. */
export function createWarmUp(client: Client, log: Pick<Log, 'debug'>) {
  let waiting: string[] | undefined = []
  const prepare = async (cql: string) => {
    try {
      // The driver prepares, then misses the values: nothing is run.
      await client.execute(cql, {}, { prepare: true })
    } catch (err) {
      if (failureOf(err, false) !== 'defect') log.debug({ err }, 'not prepared before its use')
    }
  }
  return {
    add(statements: readonly string[]) {
      if (waiting === undefined) for (const cql of statements) void prepare(cql)
      else waiting.push(...statements)
    },
    async begin() {
      const statements = waiting ?? []
      waiting = undefined
      await Promise.all(statements.map(prepare))
    },
  }
}
