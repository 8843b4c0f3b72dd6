// Decides what becomes of a pool's refills from what was seen: pure, so that every case can be
// tried. A refill is begun when the level asks for it, one at a time; a changed spec always wins.
import type {
  PoolSight,
  RefillHistory,
  RefillOutcome,
  RefillPlan,
  RefillStep,
  SeenJob,
  StoredSight,
  Trouble,
} from './refill-sight.ts'

/** No pool is filled beyond this by what is forecast, in targets and in codes. */
const FORECAST_TARGETS_MAX = 10
const FILL_CODES_MAX = 100_000_000
/** A forecast is filled beyond what must last, so that it is not asked for again at once. */
const FORECAST_SPARE = 1.25
const FORECAST_THRESHOLD = 0.8

const RETRY_MS_FIRST = 5000
const RETRY_MS_MAX = 10 * 60_000
/** Jobs that ended are kept so long for whoever wants their logs. */
const SUCCEEDED_KEPT_MS = 10 * 60_000
const FAILED_KEPT_MS = 60 * 60_000
/** A Job at work is looked at so often: that its pod does not begin is no event of its own. */
const LOOK_MS = 15_000

/** The level below which a pool is refilled, and up to which, in codes. */
export function refillMarks(
  spec: PoolSight['spec'],
  rate: number,
): { readonly from: number; readonly to: number } {
  const { lowWater, target, headroomHours } = spec
  const needed = headroomHours === null ? 0 : Math.ceil(rate * 3600 * headroomHours)
  const most = Math.min(target * FORECAST_TARGETS_MAX, FILL_CODES_MAX)
  const to = Math.max(target, Math.min(Math.ceil(needed * FORECAST_SPARE), most))
  return { from: Math.max(lowWater, Math.min(needed, Math.floor(to * FORECAST_THRESHOLD))), to }
}

type Check = (seen: PoolSight) => Trouble | undefined

/** Why a pool is not ours to fill: what fills it for us must end. The first that answers counts. */
const refusals: readonly Check[] = [
  ({ rival }) =>
    rival === null
      ? undefined
      : {
          reason: 'OtherOwner',
          message: `the CodePool ${rival} stands for the same pool and is older`,
        },
  ({ stored, self, mayReplace }) =>
    isOthers(stored, self) && stored.owner !== mayReplace
      ? {
          reason: 'OtherOwner',
          message:
            `the pool in the store belongs to ${String(stored.owner)}: delete that CodePool, and ` +
            `then annotate this one with curtail.dev/replaces-owner=${String(stored.owner)}`,
        }
      : undefined,
]

/** Why no refill can be begun now. */
const obstacles: readonly Check[] = [
  ({ stored }) =>
    stored.kind === 'unknown' ? { reason: 'StoreUnavailable', message: stored.why } : undefined,
  ({ inputs }) => (typeof inputs === 'string' ? undefined : inputs),
]

function firstOf(checks: readonly Check[], seen: PoolSight): Trouble | null {
  for (const check of checks) {
    const trouble = check(seen)
    if (trouble !== undefined) return trouble
  }
  return null
}

type There = Extract<StoredSight, { kind: 'there' }>

function isOthers(stored: StoredSight, self: string): stored is There {
  return stored.kind === 'there' && stored.owner !== null && stored.owner !== self
}

/** Decides. Whoever carries the plan out and sees the same again gets a plan without new steps. */
export function planRefillJob(seen: PoolSight, nowMs: number): RefillPlan {
  const refusal = firstOf(refusals, seen)
  const hindrance = refusal ?? firstOf(obstacles, seen)
  const cancels = planCancels(seen, refusal)
  const gone = new Set(cancels.map(({ job }) => job.name))
  const atWork = jobsAtWork(seen).filter(({ name }) => !gone.has(name))
  const news = [
    ...recordEnds(seen, nowMs),
    ...newCancels(seen, cancels).map((cancel) => outcomeOfCancel(cancel, nowMs)),
  ]
  const recorded = news.reduce(record, seen.history)
  const isWanted = wantsRefill(seen)
  const isFree = atWork.length === 0 && gone.size === 0 && !seen.jobs.some(isLeaving)
  const mayBegin = isWanted && isFree && hindrance === null && !seen.spec.isPaused
  const retryAtMs = mayBegin ? retryTimeOf(recorded, seen.inputs) : null
  const isEarly = retryAtMs !== null && nowMs < retryAtMs
  const begins = mayBegin && !isEarly ? [planBegin(seen, recorded)] : []
  const waitsUntilMs = isEarly ? retryAtMs : null
  const isBusy = atWork.length > 0 || begins.length > 0
  return {
    steps: [
      ...planOwning(seen, refusal),
      ...cancels.map(({ job, why }) => ({ kind: 'cancel', job: job.name, why }) as const),
      ...begins,
      ...planRemovals(seen, nowMs),
    ],
    history: {
      ...recorded,
      begun: Math.max(recorded.begun, ...[...begins, ...atWork].map(({ refill }) => refill)),
    },
    news,
    hindrance,
    isWanted,
    retryAtMs: waitsUntilMs,
    running: atWork[0] ?? null,
    requeueAfterMs: lookAgainAfter(seen, nowMs, { isBusy, retryAtMs: waitsUntilMs }),
  }
}

/** Those that fill the pool, the newest first. */
function jobsAtWork({ jobs }: PoolSight): SeenJob[] {
  return jobs
    .filter(({ state, isDeleting }) => state === 'running' && !isDeleting)
    .sort((one, other) => other.refill - one.refill)
}

/** Whether a Job is being removed while it may still be at work. */
function isLeaving({ state, isDeleting }: SeenJob): boolean {
  return state === 'running' && isDeleting
}

function wantsRefill({ spec, stored }: PoolSight): boolean {
  if (stored.kind === 'unknown') return false
  if (stored.kind === 'absent') return true
  return stored.level < refillMarks(spec, stored.rate).from
}

/** What ended and is not written down: finished Jobs in their order, and one that is gone. */
function recordEnds({ jobs, history }: PoolSight, nowMs: number): RefillOutcome[] {
  const known = history.last?.refill ?? 0
  const ended = jobs
    .filter(({ state, refill }) => state !== 'running' && refill > known)
    .sort((one, other) => one.refill - other.refill)
    .map(outcomeOfEnd)
  const newest = Math.max(known, ...jobs.map(({ refill }) => refill))
  if (history.begun <= newest) return ended
  // Begun, and neither there nor written down: somebody removed it.
  const lost = {
    refill: history.begun,
    job: '',
    inputs: '',
    outcome: 'Failed',
    startedMs: nowMs,
    finishedMs: nowMs,
    reason: 'JobGone',
    message: 'the Job was removed by somebody before it ended',
  } as const
  return [...ended, lost]
}

function outcomeOfEnd(job: SeenJob): RefillOutcome {
  const { name, refill, inputs, startedMs, trouble } = job
  const isGood = job.state === 'succeeded'
  return {
    refill,
    job: name,
    inputs,
    outcome: isGood ? 'Succeeded' : 'Failed',
    startedMs,
    finishedMs: job.finishedMs ?? startedMs,
    reason: isGood ? '' : (trouble?.reason ?? 'RefillFailed'),
    message: isGood ? '' : (trouble?.message ?? 'the Job failed'),
  }
}

interface Cancel {
  readonly job: SeenJob
  readonly why: string
}

/** Those that were not recorded before: a stale cache shows a cancelled Job as running. */
function newCancels({ history }: PoolSight, cancels: readonly Cancel[]): Cancel[] {
  const known = history.last?.refill ?? 0
  return cancels.filter(({ job }) => job.refill > known)
}

function outcomeOfCancel({ job, why }: Cancel, nowMs: number): RefillOutcome {
  const { name, refill, inputs, startedMs } = job
  return {
    refill,
    job: name,
    inputs,
    outcome: 'Cancelled',
    startedMs,
    finishedMs: nowMs,
    reason: 'Cancelled',
    message: why,
  }
}

function record(history: RefillHistory, outcome: RefillOutcome): RefillHistory {
  const { begun, failures, last } = history
  if (last !== null && last.refill >= outcome.refill) return history
  const failuresThen = { Succeeded: 0, Failed: failures + 1, Cancelled: failures }
  return {
    begun: Math.max(begun, outcome.refill),
    last: outcome,
    failures: failuresThen[outcome.outcome],
  }
}

/** Jobs at work that must not be: whoever says why wins over a Job that may be stuck for ever. */
function planCancels(seen: PoolSight, refusal: Trouble | null): Cancel[] {
  const { spec, inputs } = seen
  return jobsAtWork(seen).flatMap((job, i) => {
    if (refusal !== null) return [{ job, why: refusal.message }]
    if (spec.isPaused) return [{ job, why: 'the CodePool is paused' }]
    if (typeof inputs === 'string' && job.inputs !== inputs)
      return [{ job, why: 'the CodePool or the pod template has changed' }]
    return i > 0 ? [{ job, why: 'a newer Job is at work' }] : []
  })
}

/** When the next refill may be begun: later after each failure, at once after a change. */
function retryTimeOf({ failures, last }: RefillHistory, inputs: string | Trouble): number | null {
  if (failures === 0 || last?.outcome !== 'Failed') return null
  if (last.inputs !== '' && last.inputs !== inputs) return null
  return last.finishedMs + Math.min(RETRY_MS_FIRST * 2 ** (failures - 1), RETRY_MS_MAX)
}

function planBegin({ spec, stored }: PoolSight, { begun }: RefillHistory) {
  const rate = stored.kind === 'there' ? stored.rate : 0
  return { kind: 'begin', refill: begun + 1, fillTo: refillMarks(spec, rate).to } as const
}

/** Whether the store must be told that the pool is ours, or how full it is to be. */
function planOwning({ spec, stored, self }: PoolSight, refusal: Trouble | null): RefillStep[] {
  if (refusal !== null || stored.kind !== 'there') return []
  const { owner, lowWater, target } = stored
  if (owner === self && lowWater === spec.lowWater && target === spec.target) return []
  return [{ kind: 'own', replaces: owner === self ? null : owner }]
}

/** Jobs whose end was written down before, and that nobody needs any more. */
function planRemovals(seen: PoolSight, nowMs: number): RefillStep[] {
  return seen.jobs
    .filter((job) => isRecorded(job, seen) && nowMs >= keptUntilMs(job))
    .map(({ name }) => ({ kind: 'remove', job: name }))
}

function isRecorded({ state, refill, isDeleting }: SeenJob, { history }: PoolSight): boolean {
  return state !== 'running' && !isDeleting && refill <= (history.last?.refill ?? 0)
}

function keptUntilMs({ state, startedMs, finishedMs }: SeenJob): number {
  return (finishedMs ?? startedMs) + (state === 'succeeded' ? SUCCEEDED_KEPT_MS : FAILED_KEPT_MS)
}

function lookAgainAfter(
  seen: PoolSight,
  nowMs: number,
  { isBusy, retryAtMs }: { isBusy: boolean; retryAtMs: number | null },
): number | undefined {
  const times = seen.jobs
    .filter(({ state, isDeleting }) => state !== 'running' && !isDeleting)
    .map((job) => keptUntilMs(job) - nowMs)
  if (isBusy) times.push(LOOK_MS)
  if (retryAtMs !== null) times.push(retryAtMs - nowMs)
  return times.length === 0 ? undefined : Math.max(1000, Math.min(...times))
}
