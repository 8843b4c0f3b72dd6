// The kinds of statements: the consistency level, deadline and driver retries of each. The driver
// never retries a claim: only the code that sent it can distinguish it from another's claim.
import { errors, ExecutionProfile, policies, type QueryOptions, types } from 'cassandra-driver'
import type { CassandraPlan } from './settings.ts'

/** Kinds of statements. */
export type StatementKind =
  /** A conditional write (LWT). */
  | 'lwt'
  /** A read that first decides every conditional write in flight. */
  | 'serial-read'
  /** A read by key that returns every write acknowledged before it. */
  | 'majority-read'
  /** A read by key from one replica, which may miss the latest writes. */
  | 'replica-read'
  /** A read of a whole small table. */
  | 'scan'
  /** As `scan`, of a table that another process may be creating: rejections are not logged. */
  | 'new-table-scan'
  /** A read of one page of a large table, which returns every write acknowledged before it. */
  | 'page-read'
  /** An idempotent write. */
  | 'plain-write'
  /** A change of the schema. */
  | 'schema'

/** How statements of one kind are executed. */
export interface KindOptions {
  readonly options: QueryOptions
  /** Over all attempts of the driver, whose own timeout applies to each attempt. */
  readonly deadlineMs: number
  /**
   * Whether the circuit breaker counts the result, and rejects the statement while no majority of
   * replicas responds. False for a page read, although it needs a majority: a slow page does not
   * mean that a majority is missing.
   */
  readonly isCountedByBreaker: boolean
  /**
   * Whether a statement that Cassandra rejects, for example because the table does not exist, is
   * logged. If false, the caller must report this failure. All other failures are always logged.
   */
  readonly logsRejections: boolean
}

/** The longest that a redirect waits for a read. */
const READ_MS_MAX = 250
/**
 * The driver's timeout of a read: above the server's own, 5 s by default, so that a node that waits
 * for unreachable replicas returns its timeout error first. The driver closes connections after
 * timed-out reads (driver-options.ts), although such a node could still serve replica reads.
 */
const READ_ATTEMPT_MS_MAX = 5500
/** Above the latency of a healthy read; a slower read is also sent to another replica. */
const SPECULATIVE_READ_AFTER_MS = 40
/** Above the server's own bounds of a claim, 1.8 and 2 s, so that its error arrives first. */
const ATTEMPT_MS_MAX = 2200
/** Above the server's own timeout of a page, 10 s by default, so that its error arrives first. */
const PAGE_ATTEMPT_MS_MAX = 10_500
/** Below the timeout of the commands that read pages, 20 s (clients/read-pages.ts). */
const PAGE_MS_MAX = 12_000
const SCHEMA_MS_MAX = 30_000

const level = types.consistencies

/** Retries a failed idempotent statement on another node, unless the failure is a timeout. */
class RetryUnlessTimedOut extends policies.retry.RetryPolicy {
  override onRequestError(...given: Parameters<policies.retry.RetryPolicy['onRequestError']>) {
    const [, , error] = given
    if (error instanceof errors.OperationTimedOutError) return this.rethrowResult()
    return super.onRequestError(...given)
  }
}

/** The profiles of the driver's client. */
export function profilesOf({ isGlobal }: Pick<CassandraPlan, 'isGlobal'>): ExecutionProfile[] {
  const serialConsistency = isGlobal ? level.serial : level.localSerial
  // Only a read across data centers returns every commit across data centers.
  const majority = isGlobal ? level.quorum : level.localQuorum
  const retry = new RetryUnlessTimedOut()
  const never = new policies.retry.FallthroughRetryPolicy()
  const profile = (name: StatementKind, of: object) => new ExecutionProfile(name, of)
  const once = { retry: never, readTimeout: ATTEMPT_MS_MAX, serialConsistency }
  const read = { retry: retry, readTimeout: READ_ATTEMPT_MS_MAX }
  const retried = { retry: retry, readTimeout: ATTEMPT_MS_MAX, consistency: majority }
  return [
    profile('lwt', { ...once, consistency: majority }),
    profile('serial-read', { ...once, consistency: serialConsistency }),
    profile('majority-read', { ...read, consistency: majority }),
    profile('replica-read', { ...read, consistency: level.localOne }),
    profile('scan', retried),
    profile('new-table-scan', retried),
    profile('page-read', { ...retried, readTimeout: PAGE_ATTEMPT_MS_MAX }),
    profile('plain-write', retried),
    profile('schema', { ...once, readTimeout: SCHEMA_MS_MAX, consistency: majority }),
  ]
}

const uncounted = new Set<StatementKind>(['replica-read', 'new-table-scan', 'page-read', 'schema'])

function optionsOf(
  executionProfile: StatementKind,
  given: { deadlineMs: number; isIdempotent?: boolean; prepare?: boolean },
): KindOptions {
  const { deadlineMs, isIdempotent = false, prepare = true } = given
  const isCountedByBreaker = !uncounted.has(executionProfile)
  const logsRejections = executionProfile !== 'new-table-scan'
  const options = { executionProfile, isIdempotent, prepare }
  return { options, deadlineMs, isCountedByBreaker, logsRejections }
}

const ATTEMPT_SPARE_MS = 200

/** The options of each kind. */
export const kindOptions: Readonly<Record<StatementKind, KindOptions>> = {
  lwt: optionsOf('lwt', { deadlineMs: ATTEMPT_MS_MAX + ATTEMPT_SPARE_MS }),
  'serial-read': optionsOf('serial-read', { deadlineMs: ATTEMPT_MS_MAX + ATTEMPT_SPARE_MS }),
  'majority-read': optionsOf('majority-read', { deadlineMs: READ_MS_MAX, isIdempotent: true }),
  'replica-read': optionsOf('replica-read', { deadlineMs: READ_MS_MAX, isIdempotent: true }),
  scan: optionsOf('scan', { deadlineMs: 2 * ATTEMPT_MS_MAX }),
  'new-table-scan': optionsOf('new-table-scan', { deadlineMs: 2 * ATTEMPT_MS_MAX }),
  'page-read': optionsOf('page-read', { deadlineMs: PAGE_MS_MAX, isIdempotent: true }),
  'plain-write': optionsOf('plain-write', {
    deadlineMs: 2 * ATTEMPT_MS_MAX,
    isIdempotent: true,
  }),
  schema: optionsOf('schema', { deadlineMs: SCHEMA_MS_MAX, prepare: false }),
}

const { ConstantSpeculativeExecutionPolicy } = policies.speculativeExecution

/**
 * Sends a slow read by key to a second replica. The driver consults the policy for every idempotent
 * statement; writes and pages of a table are not sent twice.
 */
export class SpeculativeReads extends ConstantSpeculativeExecutionPolicy {
  readonly #never = { nextExecution: () => -1 }

  constructor() {
    super(SPECULATIVE_READ_AFTER_MS, 1)
  }

  override newPlan(keyspace: string, query: string | object[]) {
    const isRead = typeof query === 'string' && query.startsWith('SELECT')
    const isPage = isRead && query.endsWith(' LIMIT ?')
    return isRead && !isPage ? super.newPlan(keyspace, query) : this.#never
  }
}
