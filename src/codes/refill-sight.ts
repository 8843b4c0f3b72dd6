// What the controller sees of one pool before it decides, and what it decides: plain values, so
// that deciding needs nothing else.

/** What the operator asks for, in codes. */
interface PoolSpec {
  /** Below it, the pool is refilled. */
  readonly lowWater: number
  /** To it, the pool is filled. */
  readonly target: number
  /** Hours that the codes must last at the rate measured; `null` where that is not asked. */
  readonly headroomHours: number | null
  readonly isPaused: boolean
}

/** The pool in the store. */
export type StoredSight =
  /** The store does not answer. */
  | { readonly kind: 'unknown'; readonly why: string }
  /** It has never been filled. */
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'there'
      readonly level: number
      /** Codes a second, in the long run. */
      readonly rate: number
      /** Who keeps it filled, as it is written down there; `null` where nobody is. */
      readonly owner: string | null
      readonly lowWater: number | null
      readonly target: number | null
    }

/** A refill Job. */
export interface SeenJob {
  readonly name: string
  /** The number of the refill: 1 for the first. */
  readonly refill: number
  /** Names what it was made from. */
  readonly inputs: string
  readonly state: 'running' | 'succeeded' | 'failed'
  readonly isDeleting: boolean
  readonly startedMs: number
  readonly finishedMs: number | null
  /** Why it failed, or why it does not begin. */
  readonly trouble: Trouble | null
}

/** A fault in one word and in a sentence. */
export interface Trouble {
  readonly reason: string
  readonly message: string
}

/** What became of a refill. */
export interface RefillOutcome {
  readonly refill: number
  readonly job: string
  readonly inputs: string
  readonly outcome: 'Succeeded' | 'Failed' | 'Cancelled'
  readonly startedMs: number
  readonly finishedMs: number
  /** Why it failed or was cancelled; empty otherwise. */
  readonly message: string
  /** In one word; empty where it succeeded. */
  readonly reason: string
}

/** What has been written down of the refills so far. */
export interface RefillHistory {
  /** How many have been begun. */
  readonly begun: number
  /** The last that ended. */
  readonly last: RefillOutcome | null
  /** How many failed since the last that succeeded. */
  readonly failures: number
}

/** All that is seen of one pool. */
export interface PoolSight {
  readonly spec: PoolSpec
  readonly stored: StoredSight
  /** The name by which we own it. */
  readonly self: string
  /** An owner whose place we may take. */
  readonly mayReplace: string | null
  /** An older CodePool that stands for the same pool. */
  readonly rival: string | null
  /** Names what a Job would be made from now; or why none can be made. */
  readonly inputs: string | Trouble
  readonly jobs: readonly SeenJob[]
  readonly history: RefillHistory
}

/** One thing to do. Each may be done twice. */
export type RefillStep =
  /** Write down in the store that the pool is ours, and its marks. */
  | { readonly kind: 'own'; readonly replaces: string | null }
  | { readonly kind: 'begin'; readonly refill: number; readonly fillTo: number }
  /** Remove a Job that is at work. */
  | { readonly kind: 'cancel'; readonly job: string; readonly why: string }
  /** Remove a Job whose outcome is written down. */
  | { readonly kind: 'remove'; readonly job: string }

/** What is to be done and said. */
export interface RefillPlan {
  readonly steps: readonly RefillStep[]
  readonly history: RefillHistory
  /** Outcomes that are in `history` now and were not before. */
  readonly news: readonly RefillOutcome[]
  /** Why no refill may be begun, whatever the level. */
  readonly hindrance: Trouble | null
  /** Whether the level asks for a refill. */
  readonly isWanted: boolean
  /** When a refill that is wanted may be begun, after failures; `null` where nothing waits. */
  readonly retryAtMs: number | null
  /** The Job that fills the pool after the steps have been done, if one does. */
  readonly running: SeenJob | null
  /** When to look again though nothing changed. */
  readonly requeueAfterMs: number | undefined
}
