// The observed state of one pool, and the plan derived from it: plain values, so that planning is a
// pure function.

/** The desired state, in codes. */
interface PoolSpec {
  /** A refill starts below this level. */
  readonly lowWater: number
  /** A refill fills the pool to this level. */
  readonly target: number
  /** Hours that the codes must last at the measured rate; `null` if not set. */
  readonly headroomHours: number | null
  readonly isPaused: boolean
}

/** The pool in the store. */
export type ObservedStore =
  /** The level is unknown: the store is unavailable, or has too many pools. */
  | { readonly kind: 'unknown'; readonly reason: string }
  /** The pool has never been filled. */
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'present'
      readonly level: number
      /** Long-term claim rate in codes per second. */
      readonly rate: number
      /** The owner recorded in the store; `null` if no owner is recorded. */
      readonly owner: string | null
      readonly lowWater: number | null
      readonly target: number | null
    }

/** A refill Job. */
export interface ObservedJob {
  readonly name: string
  /** Number of the refill, from 1. */
  readonly refill: number
  /** Hash of the inputs from which the Job was created. */
  readonly inputs: string
  readonly state: 'running' | 'succeeded' | 'failed'
  readonly isDeleting: boolean
  readonly startedMs: number
  readonly finishedMs: number | null
  /** Why the Job failed or does not start. */
  readonly problem: Problem | null
}

/** A problem: a reason in one word and a message. */
export interface Problem {
  readonly reason: string
  readonly message: string
}

/** The outcome of a refill. */
export interface RefillOutcome {
  readonly refill: number
  readonly job: string
  readonly inputs: string
  readonly outcome: 'Succeeded' | 'Failed' | 'Cancelled'
  readonly startedMs: number
  /** When it completed; if it failed: when the failure was recorded. */
  readonly finishedMs: number
  /** Why the refill failed or was cancelled; empty otherwise. */
  readonly message: string
  /** The cause in one word; empty if it succeeded. */
  readonly reason: string
}

/** The recorded history of refills. */
export interface RefillHistory {
  /** Number of refills started. */
  readonly started: number
  /** The last refill that finished. */
  readonly last: RefillOutcome | null
  /** Number of failures since the last success. */
  readonly failures: number
}

/** The observed state of one pool. */
export interface ObservedPool {
  readonly spec: PoolSpec
  readonly stored: ObservedStore
  /** The `owner` that the store records if this CodePool owns the pool. */
  readonly self: string
  /** The owner that this CodePool may replace. */
  readonly mayReplace: string | null
  /** Namespace and name of an older CodePool of the same pool; `null`: there is none. */
  readonly conflictingOwner: string | null
  /** Hash of the inputs of a new Job, or the problem that prevents its creation. */
  readonly inputs: string | Problem
  readonly jobs: readonly ObservedJob[]
  readonly history: RefillHistory
}

/** One step of a plan; idempotent. */
export type RefillStep =
  /** Record the owner, the low-water mark and the target in the store. */
  | { readonly kind: 'own'; readonly replaces: string | null }
  | { readonly kind: 'start'; readonly refill: number; readonly fillTo: number }
  /** Delete a running Job. */
  | { readonly kind: 'cancel'; readonly job: string; readonly reason: string }
  /** Delete a finished Job whose outcome is recorded. */
  | { readonly kind: 'remove'; readonly job: string }

/** The steps to apply and the state to report. */
export interface RefillPlan {
  readonly steps: readonly RefillStep[]
  readonly history: RefillHistory
  /** Outcomes that this plan adds to `history`. */
  readonly changes: readonly RefillOutcome[]
  /** Why no refill may start, whatever the level of the pool. */
  readonly blocker: Problem | null
  /** Whether the level requires a refill. */
  readonly isWanted: boolean
  /** When a required refill may start after failures; `null` if no refill is waiting. */
  readonly retryAtMs: number | null
  /** The running Job after the steps are applied, if any. */
  readonly running: ObservedJob | null
  /** When to reconcile next if nothing changes. */
  readonly requeueAfterMs: number | undefined
}
