// Runs statements on the driver's client: each within its deadline, each failure as StoreError,
// counted and now and then logged. Those that need a majority of replicas are rejected at once
// while none responds. Knows when none is under way.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Client } from 'cassandra-driver'
import { createDeadlineQueue, type DeadlineQueue } from '../../resilience/deadline-queue.ts'
import type { Log } from '../../telemetry/log.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraMetrics } from './driver-metrics.ts'
import { failureOf, refusalOf } from './failed-outcome.ts'
import type { MajorityWatch } from './majority.ts'
import type { Row } from './row.ts'
import { type StatementKind, type StatementRun, statementRuns } from './statement-kinds.ts'
import type { NodeWatch } from './watch-nodes.ts'

/** Failures are counted in metrics; the log shows one in this time. */
const LOG_FAILURE_MS = 10_000

/**
 * Statements of one kind whose answer is late, and may come yet; further ones are not begun. Well
 * below what one connection of the driver takes (2048), so that other kinds still get through.
 */
export const LATE_MAX = 256

/** A read that must be fast may be late for other reasons than a missing majority. */
const DOUBT_MS_MIN = 1000

const NO_ROWS: readonly Row[] = []
const NO_VALUES: readonly unknown[] = []

/** The driver's answer, of which these are used; its types lack the one, and that of no rows. */
interface ResultSet {
  readonly rows?: readonly Row[]
  readonly info: { readonly isSchemaInAgreement?: boolean }
}

/** A kind of statement with what is made for it once. */
interface Run extends StatementRun {
  readonly deadlines: DeadlineQueue
  readonly inTime: { observe(seconds: number): void }
  /** How many were given up and are still under way. */
  late: number
}

type Watch = Pick<NodeWatch, 'isConnected' | 'majority'>

function runOf(metrics: CassandraMetrics, kind: string, run: StatementRun): Run {
  const deadlines = createDeadlineQueue(run.deadlineMs, () => performance.now())
  return { ...run, deadlines, inTime: metrics.cassandraCallSeconds.labels(kind, 'ok'), late: 0 }
}

function runsOf(metrics: CassandraMetrics): ReadonlyMap<string, Run> {
  const runs = Object.entries(statementRuns)
  return new Map(runs.map(([kind, run]) => [kind, runOf(metrics, kind, run)]))
}

const NO_MAJORITY = 'Cassandra is unavailable: no majority of replicas responds'

const notDone = (message: string) => new StoreError(message, { outcome: 'not-done' })

/** Throws StoreError where a statement is not to be sent now. */
function checkSendable(given: { kind: string; run: Run; watch: Watch }): void {
  const { kind, run, watch } = given
  if (!watch.isConnected()) throw notDone('Cassandra is not connected')
  if (run.needsMajority && watch.majority.isPresent() === false) throw notDone(NO_MAJORITY)
  if (run.late >= LATE_MAX) throw notDone(`Cassandra owes too many answers (${kind})`)
}

/** Ends the waiting for an answer; `false`: it came too late, and is owed no longer. */
function endInTime(run: Run, waiting: ReturnType<DeadlineQueue['begin']>): boolean {
  if (run.deadlines.end(waiting)) return true
  run.late--
  return false
}

/** What a statement gave. */
export function rowsOf({ rows }: ResultSet): readonly Row[] {
  return rows ?? NO_ROWS
}

/** Makes what runs statements while the client is connected. */
export function createCalls(given: {
  client: Client
  metrics: CassandraMetrics
  log: Pick<Log, 'warn'>
  watch: Watch
}) {
  const { client, metrics, log, watch } = given
  const { majority } = watch
  const fail = createFailures(metrics, log)
  let underWay = 0
  let onDrained: (() => void) | undefined
  const settled = () => {
    underWay--
    if (underWay === 0) onDrained?.()
  }
  const runs = runsOf(metrics)
  const begin = (
    kind: StatementKind,
    cql: string,
    values: readonly unknown[] = NO_VALUES,
  ): Promise<ResultSet> =>
    new Promise((resolve, reject) => {
      const run = runs.get(kind)
      assert(run !== undefined)
      checkSendable({ kind, run, watch })
      const begunMs = performance.now()
      const failed = (cause: unknown) => {
        const error = fail({ kind, begunMs }, cause)
        reject(error instanceof Error ? error : new Error(String(error)))
      }
      const waiting = run.deadlines.begin(() => {
        run.late++
        if (run.needsMajority && run.deadlineMs >= DOUBT_MS_MIN) majority.failed(begunMs)
        failed(new Error(`no answer after ${Math.round(performance.now() - begunMs)} ms`))
      })
      underWay++
      // Without a step in between: promises that only hand on would cost more than this does.
      client.execute(cql, values, run.options).then(
        (result: unknown) => {
          settled()
          const nowMs = performance.now()
          if (run.needsMajority) majority.answered(nowMs)
          if (!endInTime(run, waiting)) return
          run.inTime.observe((nowMs - begunMs) / 1000)
          resolve(result as ResultSet)
        },
        (cause: unknown) => {
          settled()
          if (run.needsMajority && failureOf(cause) !== 'defect') majority.failed(begunMs)
          if (endInTime(run, waiting)) failed(cause)
        },
      )
    })
  return {
    run: begin,
    /** Ends the waiting of every statement that needs a majority. */
    failWaiting() {
      for (const run of runs.values()) if (run.needsMajority) run.deadlines.expireAll()
    },
    runOnEach: (cql: string, localDc: string) => runOnEach(client, cql, localDc),
    /** Resolves once nothing is under way; every statement is bounded by the driver's time-outs. */
    drained: () =>
      underWay === 0
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            onDrained = resolve
          }),
  }
}

/** A serial read needs the same replicas as a claim, and changes nothing. */
const PROBE = 'SELECT writer_id FROM links WHERE short_code = ?'
const PROBED_NODES_MAX = 3

/** Makes what reads a code that no link can have, another one through each of some nodes. */
export function createProbe(client: Client, localDc: string) {
  const { options } = statementRuns['serial-read']
  return (majority: Pick<MajorityWatch, 'answered'>): void => {
    const hosts = client.hosts.values().filter((h) => h.datacenter === localDc && h.isUp())
    const answered = () => {
      majority.answered(performance.now())
    }
    const first = Math.floor(Math.random() * hosts.length)
    const some = [...hosts.slice(first), ...hosts.slice(0, first)].slice(0, PROBED_NODES_MAX)
    for (const host of some) {
      const code = `-${randomBytes(8).toString('hex')}`
      client.execute(PROBE, [code], { ...options, host }).then(answered, (error: unknown) => {
        // A server that rejects the statement responds: a table or a right is missing.
        if (refusalOf(error) !== undefined) answered()
      })
    }
  }
}

/** What each node of `localDc` that is up gave; no rows of one that failed. */
async function runOnEach(
  client: Client,
  cql: string,
  localDc: string,
): Promise<readonly (readonly Row[])[]> {
  const hosts = client.hosts.values().filter((h) => h.datacenter === localDc && h.isUp())
  const { options } = statementRuns.scan
  const asked = hosts.map((host) => client.execute(cql, [], { ...options, host }))
  const answers = await Promise.allSettled(asked)
  return answers.map((answer) =>
    answer.status === 'fulfilled' ? (answer.value.rows as readonly Row[]) : NO_ROWS,
  )
}

/** Makes what counts and logs a failure, and turns it into the error that is thrown. */
function createFailures(metrics: CassandraMetrics, log: Pick<Log, 'warn'>) {
  const tell = createFailureLog(log)
  return ({ kind, begunMs }: { kind: string; begunMs: number }, cause: unknown): unknown => {
    const failure = failureOf(cause)
    const seconds = (performance.now() - begunMs) / 1000
    metrics.cassandraCallSeconds.labels(kind, failure).observe(seconds)
    if (failure === 'defect') return cause
    tell({ kind, failure, cause })
    return new StoreError(`Cassandra did not answer (${kind})`, { outcome: failure, cause })
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
      if (failureOf(err) !== 'defect') log.debug({ err }, 'not prepared before its use')
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
