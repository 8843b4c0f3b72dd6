// The kinds of statements: at which consistency each is run, how long it may take, and whether the
// driver may repeat it. A claim is repeated by nobody but us, who know whose it is.
import { errors, ExecutionProfile, policies, type QueryOptions, types } from 'cassandra-driver'
import type { CassandraPlan } from './settings.ts'

/** Kinds of statements. */
export type StatementKind =
  /** A conditional write (LWT). */
  | 'lwt'
  /** A read that first decides every conditional write under way. */
  | 'serial-read'
  /** A read by key that sees every write that resolved before it. */
  | 'majority-read'
  /** A read by key that asks one replica, which may not know of the latest writes. */
  | 'replica-read'
  /** A read of a whole small table. */
  | 'scan'
  /** A write that may be done twice. */
  | 'plain-write'
  /** A change of the schema. */
  | 'schema'

/** How statements of one kind are run. */
export interface StatementRun {
  readonly options: QueryOptions
  /** Ours, over all attempts of the driver: its own time-out counts for each. */
  readonly deadlineMs: number
  /** Whether it fails unless a majority of replicas responds. */
  readonly needsMajority: boolean
}

/** A redirect waits for a read so long at most, whatever the cluster does. */
const READ_MS_MAX = 250
/**
 * How long the driver waits for a read: above the server's own bound, 5 s as shipped. A node that
 * waits in vain for others is heard then. Whose calls stay unanswered is taken for hung and left
 * (driver-options.ts), though one replica's answer is all that is to be had of it.
 */
const READ_ATTEMPT_MS_MAX = 5500
/** Above what a healthy read takes: then another replica is asked too. */
const SECOND_READ_AFTER_MS = 40
/** Above the server's own bounds of a claim, 1.8 and 2 s, so that its answer comes first. */
const ATTEMPT_MS_MAX = 2200
const SCHEMA_MS_MAX = 30_000

const level = types.consistencies

/** Repeats what may be done twice on another node, but not what has used up its time on one. */
class RepeatUnlessLate extends policies.retry.RetryPolicy {
  override onRequestError(...given: Parameters<policies.retry.RetryPolicy['onRequestError']>) {
    const [, , error] = given
    if (error instanceof errors.OperationTimedOutError) return this.rethrowResult()
    return super.onRequestError(...given)
  }
}

/** The profiles of the driver's client. */
export function profilesOf({ isGlobal }: Pick<CassandraPlan, 'isGlobal'>): ExecutionProfile[] {
  const serialConsistency = isGlobal ? level.serial : level.localSerial
  // A commit across data centers is seen in each only by a read across them.
  const majority = isGlobal ? level.quorum : level.localQuorum
  const repeat = new RepeatUnlessLate()
  const never = new policies.retry.FallthroughRetryPolicy()
  const profile = (name: StatementKind, of: object) => new ExecutionProfile(name, of)
  const once = { retry: never, readTimeout: ATTEMPT_MS_MAX, serialConsistency }
  const read = { retry: repeat, readTimeout: READ_ATTEMPT_MS_MAX }
  const again = { retry: repeat, readTimeout: ATTEMPT_MS_MAX, consistency: majority }
  return [
    profile('lwt', { ...once, consistency: majority }),
    profile('serial-read', { ...once, consistency: serialConsistency }),
    profile('majority-read', { ...read, consistency: majority }),
    profile('replica-read', { ...read, consistency: level.localOne }),
    profile('scan', again),
    profile('plain-write', again),
    profile('schema', { ...once, readTimeout: SCHEMA_MS_MAX, consistency: majority }),
  ]
}

function runOf(
  executionProfile: StatementKind,
  how: { deadlineMs: number; isIdempotent?: boolean; prepare?: boolean },
): StatementRun {
  const { deadlineMs, isIdempotent = false, prepare = true } = how
  const needsMajority = executionProfile !== 'replica-read' && executionProfile !== 'schema'
  return { options: { executionProfile, isIdempotent, prepare }, deadlineMs, needsMajority }
}

const ATTEMPT_SPARE_MS = 200

/** How each kind is run. */
export const statementRuns: Readonly<Record<StatementKind, StatementRun>> = {
  lwt: runOf('lwt', { deadlineMs: ATTEMPT_MS_MAX + ATTEMPT_SPARE_MS }),
  'serial-read': runOf('serial-read', { deadlineMs: ATTEMPT_MS_MAX + ATTEMPT_SPARE_MS }),
  'majority-read': runOf('majority-read', { deadlineMs: READ_MS_MAX, isIdempotent: true }),
  'replica-read': runOf('replica-read', { deadlineMs: READ_MS_MAX, isIdempotent: true }),
  scan: runOf('scan', { deadlineMs: 2 * ATTEMPT_MS_MAX }),
  'plain-write': runOf('plain-write', {
    deadlineMs: 2 * ATTEMPT_MS_MAX,
    isIdempotent: true,
  }),
  schema: runOf('schema', { deadlineMs: SCHEMA_MS_MAX, prepare: false }),
}

/**
 * Asks a second replica where a read is slow. The driver asks this of every statement that may be
 * done twice; what writes is left alone.
 */
export class SecondRead extends policies.speculativeExecution.ConstantSpeculativeExecutionPolicy {
  readonly #never = { nextExecution: () => -1 }

  constructor() {
    super(SECOND_READ_AFTER_MS, 1)
  }

  override newPlan(keyspace: string, query: string | object[]) {
    const isRead = typeof query === 'string' && query.startsWith('SELECT')
    return isRead ? super.newPlan(keyspace, query) : this.#never
  }
}
