// Plans the refills of a pool from its observed state; pure, so that tests cover every case. One
// refill runs at a time: it starts when the level requires it, and a changed spec cancels it.
import type {
  ObservedPool,
  RefillHistory,
  RefillOutcome,
  RefillPlan,
  RefillStep,
  ObservedJob,
  ObservedStore,
  Problem,
} from './observed-state.ts'

/**
 * The forecast is the number of codes that headroomHours requires at the measured rate. It raises
 * the level that a refill fills to, but not above this multiple of the target.
 */
const FORECAST_TARGETS_MAX = 10
/** The forecast does not raise that level above this number of codes either. */
const FILL_CODES_MAX = 100_000_000
/** Hysteresis: a refill fills to more than the forecast, so that no other follows immediately. */
const FORECAST_MARGIN = 1.25
/** Hysteresis if that level is limited: the forecast starts refills below this fraction of it. */
const FORECAST_THRESHOLD = 0.8

const RETRY_MS_FIRST = 5000
const RETRY_MS_MAX = 10 * 60_000
/** How long finished Jobs are kept for their logs. */
const SUCCEEDED_KEPT_MS = 10 * 60_000
const FAILED_KEPT_MS = 60 * 60_000
/** Interval of checks on a running Job: a pod that does not start causes no watch event. */
const CHECK_MS = 15_000

/** The level below which a refill starts, and the level it fills to, in codes. */
export function refillMarks(
  spec: ObservedPool['spec'],
  rate: number,
): { readonly from: number; readonly to: number } {
  const { lowWater, target, headroomHours } = spec
  const needed = headroomHours === null ? 0 : Math.ceil(rate * 3600 * headroomHours)
  const cap = Math.min(target * FORECAST_TARGETS_MAX, FILL_CODES_MAX)
  const to = Math.max(target, Math.min(Math.ceil(needed * FORECAST_MARGIN), cap))
  return { from: Math.max(lowWater, Math.min(needed, Math.floor(to * FORECAST_THRESHOLD))), to }
}

/** The reason of a problem: the store is unavailable. */
export const STORE_UNAVAILABLE = 'StoreUnavailable'

type Check = (observed: ObservedPool) => Problem | undefined

/** Checks for ownership conflicts, which cancel running Jobs. The first conflict is reported. */
const ownershipChecks: readonly Check[] = [
  ({ conflictingOwner }) =>
    conflictingOwner === null
      ? undefined
      : {
          reason: 'OtherOwner',
          message: `the older CodePool ${conflictingOwner} refers to the same pool`,
        },
  ({ stored, self, mayReplace }) =>
    isOwnedByOther(stored, self) && stored.owner !== mayReplace
      ? {
          reason: 'OtherOwner',
          message:
            `the pool in the store belongs to ${String(stored.owner)}: delete that CodePool, and ` +
            `then annotate this one with curtail.dev/replaces-owner=${String(stored.owner)}`,
        }
      : undefined,
]

/** Reasons why no refill can start now. */
const startChecks: readonly Check[] = [
  ({ stored }) =>
    stored.kind === 'unknown' ? { reason: STORE_UNAVAILABLE, message: stored.reason } : undefined,
  ({ inputs }) => (typeof inputs === 'string' ? undefined : inputs),
]

function firstOf(checks: readonly Check[], observed: ObservedPool): Problem | null {
  for (const check of checks) {
    const problem = check(observed)
    if (problem !== undefined) return problem
  }
  return null
}

type PresentPool = Extract<ObservedStore, { kind: 'present' }>

function isOwnedByOther(stored: ObservedStore, self: string): stored is PresentPool {
  return stored.kind === 'present' && stored.owner !== null && stored.owner !== self
}

/** Plans the next steps. Idempotent: after these steps a new plan contains no steps. */
export function planRefillJob(observed: ObservedPool, nowMs: number): RefillPlan {
  const ownershipProblem = firstOf(ownershipChecks, observed)
  const blocker = ownershipProblem ?? firstOf(startChecks, observed)
  const cancels = planCancels(observed, ownershipProblem)
  const cancelled = new Set(cancels.map(({ job }) => job.name))
  const activeJobs = runningJobsOf(observed).filter(({ name }) => !cancelled.has(name))
  const lastRecorded = observed.history.last?.refill ?? 0
  const changes = [
    ...newOutcomes(observed, nowMs),
    // A stale cache may show a cancelled Job as running after its outcome was recorded.
    ...cancels
      .filter(({ job }) => job.refill > lastRecorded)
      .map((cancel) => outcomeOfCancel(cancel, nowMs)),
  ]
  const recorded = changes.reduce(record, observed.history)
  const isWanted = needsRefill(observed)
  // A running Job that is cancelled or being deleted may still run.
  const isFree = observed.jobs.every(({ state }) => state !== 'running')
  const mayStart = isWanted && isFree && blocker === null && !observed.spec.isPaused
  const retryAtMs = mayStart ? retryTimeOf(recorded, observed.inputs, nowMs) : null
  const isEarly = retryAtMs !== null && nowMs < retryAtMs
  const starts = mayStart && !isEarly ? [planStart(observed, recorded)] : []
  const waitsUntilMs = isEarly ? retryAtMs : null
  const isBusy = activeJobs.length > 0 || starts.length > 0
  return {
    steps: [
      ...planOwning(observed, ownershipProblem),
      ...cancels.map(({ job, reason }) => ({ kind: 'cancel', job: job.name, reason }) as const),
      ...starts,
      ...planRemovals(observed, nowMs),
    ],
    history: {
      ...recorded,
      started: Math.max(
        recorded.started,
        ...[...starts, ...activeJobs].map(({ refill }) => refill),
      ),
    },
    changes,
    blocker,
    isWanted,
    retryAtMs: waitsUntilMs,
    running: activeJobs[0] ?? null,
    requeueAfterMs: requeueAfter(observed, nowMs, { isBusy, retryAtMs: waitsUntilMs }),
  }
}

/** The running Jobs that are not being deleted, the newest first. */
function runningJobsOf({ jobs }: ObservedPool): ObservedJob[] {
  return jobs
    .filter(({ state, isDeleting }) => state === 'running' && !isDeleting)
    .sort((a, b) => b.refill - a.refill)
}

function needsRefill({ spec, stored }: ObservedPool): boolean {
  if (stored.kind === 'unknown') return false
  if (stored.kind === 'absent') return true
  return stored.level < refillMarks(spec, stored.rate).from
}

/** Outcomes that are not recorded yet: of finished Jobs in order, and of a deleted Job. */
function newOutcomes({ jobs, history }: ObservedPool, nowMs: number): RefillOutcome[] {
  const lastRecorded = history.last?.refill ?? 0
  const finished = jobs
    .filter(({ state, refill }) => state !== 'running' && refill > lastRecorded)
    .sort((a, b) => a.refill - b.refill)
    .map((job) => outcomeOfFinished(job, nowMs))
  const newest = Math.max(lastRecorded, ...jobs.map(({ refill }) => refill))
  if (history.started <= newest) return finished
  // The Job was started, but is neither observed nor recorded: another client has deleted it.
  const lost = {
    refill: history.started,
    job: '',
    inputs: '',
    outcome: 'Failed',
    startedMs: nowMs,
    finishedMs: nowMs,
    reason: 'JobDeleted',
    message: 'the Job was deleted by another client before it completed',
  } as const
  return [...finished, lost]
}

function outcomeOfFinished(job: ObservedJob, nowMs: number): RefillOutcome {
  const { startedMs, problem } = job
  const isGood = job.state === 'succeeded'
  return {
    ...jobFieldsOf(job),
    outcome: isGood ? 'Succeeded' : 'Failed',
    // A back-off counts from now: the Job's times come from another clock, which may differ.
    finishedMs: isGood ? (job.finishedMs ?? startedMs) : nowMs,
    reason: isGood ? '' : (problem?.reason ?? 'RefillFailed'),
    message: isGood ? '' : (problem?.message ?? 'the Job failed'),
  }
}

/** The fields that an outcome takes from its Job. */
function jobFieldsOf({ name, refill, inputs, startedMs }: ObservedJob) {
  return { refill, job: name, inputs, startedMs }
}

interface Cancel {
  readonly job: ObservedJob
  readonly reason: string
}

function outcomeOfCancel({ job, reason: message }: Cancel, nowMs: number): RefillOutcome {
  const outcome = 'Cancelled'
  return { ...jobFieldsOf(job), outcome, finishedMs: nowMs, reason: outcome, message }
}

function record(history: RefillHistory, outcome: RefillOutcome): RefillHistory {
  const { started, failures, last } = history
  if (last !== null && last.refill >= outcome.refill) return history
  const failuresAfter = { Succeeded: 0, Failed: failures + 1, Cancelled: failures }
  return {
    started: Math.max(started, outcome.refill),
    last: outcome,
    failures: failuresAfter[outcome.outcome],
  }
}

/** Running Jobs to cancel: a change takes effect even if a Job is stuck. */
function planCancels(observed: ObservedPool, ownershipProblem: Problem | null): Cancel[] {
  const { spec, inputs } = observed
  return runningJobsOf(observed).flatMap((job, i) => {
    if (ownershipProblem !== null) return [{ job, reason: ownershipProblem.message }]
    if (spec.isPaused) return [{ job, reason: 'the CodePool is paused' }]
    if (typeof inputs === 'string' && job.inputs !== inputs)
      return [{ job, reason: 'the CodePool or the pod template has changed' }]
    return i > 0 ? [{ job, reason: 'a newer Job is running' }] : []
  })
}

/**
 * The earliest start of the next refill: backs off after failures. `null` (now) if the last refill
 * did not fail, if the inputs have changed since, or if its failure is recorded in the future: the
 * clock was ahead.
 */
function retryTimeOf(
  { failures, last }: RefillHistory,
  inputs: string | Problem,
  nowMs: number,
): number | null {
  if (failures === 0 || last?.outcome !== 'Failed' || last.finishedMs > nowMs) return null
  if (last.inputs !== '' && last.inputs !== inputs) return null
  return last.finishedMs + Math.min(RETRY_MS_FIRST * 2 ** (failures - 1), RETRY_MS_MAX)
}

function planStart({ spec, stored }: ObservedPool, { started }: RefillHistory) {
  const rate = stored.kind === 'present' ? stored.rate : 0
  return { kind: 'start', refill: started + 1, fillTo: refillMarks(spec, rate).to } as const
}

/** A step to record owner, low-water mark and target in the store, if they differ. */
function planOwning(
  { spec, stored, self }: ObservedPool,
  ownershipProblem: Problem | null,
): RefillStep[] {
  if (ownershipProblem !== null || stored.kind !== 'present') return []
  const { owner, lowWater, target } = stored
  if (owner === self && lowWater === spec.lowWater && target === spec.target) return []
  return [{ kind: 'own', replaces: owner === self ? null : owner }]
}

/** Deletes Jobs whose outcome is recorded and whose retention has expired. */
function planRemovals(observed: ObservedPool, nowMs: number): RefillStep[] {
  const lastRecorded = observed.history.last?.refill ?? 0
  return finishedJobsOf(observed)
    .filter((job) => job.refill <= lastRecorded && nowMs >= keptUntilMs(job))
    .map(({ name }) => ({ kind: 'remove', job: name }))
}

/** The finished Jobs that are not being deleted. */
function finishedJobsOf({ jobs }: ObservedPool): ObservedJob[] {
  return jobs.filter(({ state, isDeleting }) => state !== 'running' && !isDeleting)
}

function keptUntilMs({ state, startedMs, finishedMs }: ObservedJob): number {
  return (finishedMs ?? startedMs) + (state === 'succeeded' ? SUCCEEDED_KEPT_MS : FAILED_KEPT_MS)
}

function requeueAfter(
  observed: ObservedPool,
  nowMs: number,
  { isBusy, retryAtMs }: { isBusy: boolean; retryAtMs: number | null },
): number | undefined {
  const times = finishedJobsOf(observed).map((job) => keptUntilMs(job) - nowMs)
  if (isBusy) times.push(CHECK_MS)
  if (retryAtMs !== null) times.push(retryAtMs - nowMs)
  return times.length === 0 ? undefined : Math.max(1000, Math.min(...times))
}
