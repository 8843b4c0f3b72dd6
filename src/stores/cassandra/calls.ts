// Runs statements on the driver's client, each within its deadline. The failure of a statement that
// was sent is a StoreError that is counted and, rate-limited, logged. Statements that the circuit
// breaker counts are not sent while no majority of replicas responds. Tracks the statements whose
// callers wait.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Client } from 'cassandra-driver'
import { createDeadlineQueue, type DeadlineQueue } from '../../resilience/deadline-queue.ts'
import type { Log } from '../../telemetry/log.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraMetrics } from './driver-metrics.ts'
import { failureOf, isNewTableError, rejectionOf } from './failed-outcome.ts'
import type { MajorityWatch } from './majority.ts'
import type { Row } from './row.ts'
import { type KindOptions, kindOptions, type StatementKind } from './statement-kinds.ts'
import type { NodeWatch } from './watch-nodes.ts'

/** Every failure of a sent statement is counted in metrics; one per this period is logged. */
const LOG_FAILURE_MS = 10_000

/**
 * Maximum number of statements of one kind that timed out and are still in flight; beyond it,
 * further ones are rejected. Well below the driver's 2048 per connection, so other kinds still run.
 */
export const TIMED_OUT_MAX = 256

/** A timeout of a statement with a shorter deadline does not indicate a missing majority. */
const SUSPECT_DEADLINE_MS_MIN = 1000

const NO_ROWS: readonly Row[] = []
const NO_VALUES: readonly unknown[] = []

/** The used fields of the driver's result: its types lack one, and declare `rows` as required. */
interface ResultSet {
  readonly rows?: readonly Row[]
  readonly info: { readonly isSchemaInAgreement?: boolean }
}

/** A kind's options with its deadline queue, metric series and count of timed-out statements. */
interface KindState extends KindOptions {
  readonly deadlines: DeadlineQueue
  readonly okSeconds: { observe(seconds: number): void }
  /** Statements that timed out and are still in flight. */
  timedOut: number
}

type Watch = Pick<NodeWatch, 'isConnected' | 'majority'>

function kindStatesOf(metrics: CassandraMetrics): ReadonlyMap<string, KindState> {
  const stateOf = ([kind, options]: [string, KindOptions]) => {
    const deadlines = createDeadlineQueue(options.deadlineMs, () => performance.now())
    const okSeconds = metrics.cassandraCallSeconds.labels(kind, 'ok')
    return [kind, { ...options, deadlines, okSeconds, timedOut: 0 }] as const
  }
  return new Map(Object.entries(kindOptions).map(stateOf))
}

const NO_MAJORITY = 'Cassandra is unavailable: no majority of replicas responds'

const notDone = (message: string) => new StoreError(message, { outcome: 'not-done' })

/** Throws StoreError if the statement must not be sent now. */
function checkSendable(kind: string, state: KindState, watch: Watch): void {
  if (!watch.isConnected()) throw notDone('Cassandra is not connected')
  if (state.isCountedByBreaker && watch.majority.isPresent() === false) throw notDone(NO_MAJORITY)
  if (state.timedOut >= TIMED_OUT_MAX)
    throw notDone(`too many statements timed out and have no response yet (${kind})`)
}

/** Removes a completed statement's deadline; `false` if the statement had timed out before. */
function completeWithinDeadline(
  state: KindState,
  deadline: ReturnType<DeadlineQueue['add']>,
): boolean {
  if (state.deadlines.remove(deadline)) return true
  state.timedOut--
  return false
}

/** The rows of a result. */
export function rowsOf({ rows }: ResultSet): readonly Row[] {
  return rows ?? NO_ROWS
}

/** Dependencies of the calls. */
interface CallsDeps {
  readonly client: Client
  readonly metrics: CassandraMetrics
  readonly log: Pick<Log, 'warn'>
  readonly watch: Watch
}

/** Creates the functions that run statements on a connected client. */
export function createCalls(given: CallsDeps) {
  const { client, metrics, log, watch } = given
  const { majority } = watch
  const fail = createFailureHandler(metrics, log)
  let waiting = 0
  let onDrained: (() => void) | undefined
  const settled = () => {
    waiting--
    if (waiting === 0) onDrained?.()
  }
  const states = kindStatesOf(metrics)
  const execute = (
    kind: StatementKind,
    cql: string,
    values: readonly unknown[] = NO_VALUES,
  ): Promise<ResultSet> =>
    new Promise((resolve, reject) => {
      const state = states.get(kind)
      assert(state !== undefined)
      checkSendable(kind, state, watch)
      const startedMs = performance.now()
      const failed = (cause: unknown) => {
        const error = fail({ kind, startedMs }, cause)
        reject(error instanceof Error ? error : new Error(String(error)))
      }
      const deadline = state.deadlines.add(() => {
        state.timedOut++
        settled()
        if (state.isCountedByBreaker && state.deadlineMs >= SUSPECT_DEADLINE_MS_MIN) {
          majority.noteFailure(startedMs)
        }
        failed(new Error(`no response after ${Math.round(performance.now() - startedMs)} ms`))
      })
      waiting++
      // No intermediate promise: on this hot path it would cost more than the rest of the function.
      client.execute(cql, values, state.options).then(
        (result: unknown) => {
          const nowMs = performance.now()
          if (state.isCountedByBreaker) majority.noteSuccess(nowMs)
          if (!completeWithinDeadline(state, deadline)) return
          settled()
          state.okSeconds.observe((nowMs - startedMs) / 1000)
          resolve(result as ResultSet)
        },
        (cause: unknown) => {
          if (state.isCountedByBreaker && failureOf(cause) !== 'defect') {
            majority.noteFailure(startedMs)
          }
          if (!completeWithinDeadline(state, deadline)) return
          settled()
          failed(cause)
        },
      )
    })
  return {
    run: execute,
    /** Times out every statement in flight that the circuit breaker counts. */
    failPending() {
      for (const state of states.values()) if (state.isCountedByBreaker) state.deadlines.expireAll()
    },
    /** Resolves once no caller waits for a statement; its deadline bounds every wait. */
    drained: () =>
      waiting === 0
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            onDrained = resolve
          }),
  }
}

/** A serial read needs the same replicas as a claim, and writes nothing. */
const PROBE = 'SELECT writer_id FROM links WHERE short_code = ?'
const PROBED_NODES_MAX = 3

/** Creates a probe that reads invalid codes, a different one through each of a few nodes. */
export function createProbe(client: Client, localDc: string) {
  const { options } = kindOptions['serial-read']
  return (majority: Pick<MajorityWatch, 'noteSuccess'>): void => {
    const hosts = client.hosts.values().filter((h) => h.datacenter === localDc && h.isUp())
    const noteSuccess = () => {
      majority.noteSuccess(performance.now())
    }
    const first = Math.floor(Math.random() * hosts.length)
    const probed = [...hosts.slice(first), ...hosts.slice(0, first)].slice(0, PROBED_NODES_MAX)
    for (const host of probed) {
      const code = `-${randomBytes(8).toString('hex')}`
      client.execute(PROBE, [code], { ...options, host }).then(noteSuccess, (error: unknown) => {
        // A rejection is a response too: a table or a permission is missing.
        if (rejectionOf(error) !== undefined) noteSuccess()
      })
    }
  }
}

/** The rows from each node of `localDc` that is up; none from a node that failed. */
export async function runOnEach(
  client: Client,
  cql: string,
  localDc: string,
): Promise<readonly (readonly Row[])[]> {
  const hosts = client.hosts.values().filter((h) => h.datacenter === localDc && h.isUp())
  const { options } = kindOptions.scan
  const results = await Promise.allSettled(
    hosts.map((host) => client.execute(cql, [], { ...options, host })),
  )
  return results.map((result) =>
    result.status === 'fulfilled' ? (result.value.rows as readonly Row[]) : NO_ROWS,
  )
}

/** Creates the function that counts and logs a failure and returns the error to throw. */
function createFailureHandler(metrics: CassandraMetrics, log: Pick<Log, 'warn'>) {
  let unlogged = 0
  let nextLogMs = -Infinity
  return (
    { kind, startedMs }: { kind: StatementKind; startedMs: number },
    cause: unknown,
  ): unknown => {
    const outcome = failureOf(cause)
    const nowMs = performance.now()
    metrics.cassandraCallSeconds.labels(kind, outcome).observe((nowMs - startedMs) / 1000)
    if (outcome === 'defect') return cause
    const isRejection = rejectionOf(cause) !== undefined
    const fault = isRejection ? 'rejected the statement' : 'did not complete the statement'
    const failure = new StoreError(`Cassandra ${fault} (${kind})`, { outcome, cause })
    const isExpected = isRejection || isNewTableError(cause)
    if (isExpected && !kindOptions[kind].logsRejections) return failure
    if (nowMs < nextLogMs) unlogged++
    else {
      nextLogMs = nowMs + LOG_FAILURE_MS
      log.warn({ kind, outcome, err: cause, unlogged }, 'Cassandra statement failed')
      unlogged = 0
    }
    return failure
  }
}

/** Prepares statements at the first connection, so that the first request does not wait for it. */
export function createWarmUp(client: Client, log: Pick<Log, 'debug'>) {
  let pending: string[] | undefined = []
  const prepare = async (cql: string) => {
    try {
      // The driver prepares the statement, then fails for lack of values: nothing is executed.
      await client.execute(cql, {}, { prepare: true })
    } catch (err) {
      if (failureOf(err) !== 'defect')
        log.debug({ err }, 'statement not prepared before its first use')
    }
  }
  return {
    add(statements: readonly string[]) {
      if (pending === undefined) for (const cql of statements) void prepare(cql)
      else pending.push(...statements)
    },
    async start() {
      const statements = pending ?? []
      pending = undefined
      await Promise.all(statements.map(prepare))
    },
  }
}
