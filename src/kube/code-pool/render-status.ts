// Renders the status of a CodePool from the observed state and the plan. Values that change with
// traffic are coarse, so that not every claim requires a write.
import { poolConditions } from '../../codes/pool-conditions.ts'
import type {
  ObservedPool,
  RefillOutcome,
  RefillPlan,
  ObservedStore,
} from '../../codes/observed-state.ts'
import { mergeConditions, formatTime } from '../conditions.ts'
import type { Condition } from '../objects.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'

/** The reported level is updated when it differs by this fraction of the target. */
const LEVEL_STEP = 0.05

/** Renders the status to write. */
export function renderStatus(
  pool: CodePool,
  input: { observed: ObservedPool; plan: RefillPlan; storeName: string; nowMs: number },
): CodePoolStatus {
  const { observed, plan, storeName, nowMs } = input
  const generation = pool.metadata.generation ?? 0
  const before = pool.status ?? {}
  const { last, started, failures } = plan.history
  const conditions = poolConditions(observed, plan, nowMs)
  return {
    observedGeneration: generation,
    storeName,
    ...(plan.changes.length > 0
      ? currentLevelOf(observed.stored)
      : reportedLevelOf(pool, observed.stored)),
    refills: started,
    failures,
    ...(last !== null && { lastRefill: renderOutcome(last) }),
    conditions: mergeConditions((before.conditions ?? []) as readonly Condition[], conditions, {
      nowMs,
      generation,
    }),
  }
}

type LevelFields = Pick<CodePoolStatus, 'level' | 'claimRate' | 'timeToEmpty'>

/** The level, rate and duration to report: the previous ones unless they changed noticeably. */
function reportedLevelOf({ spec, status = {} }: CodePool, stored: ObservedStore): LevelFields {
  const { level, claimRate, timeToEmpty } = status
  const previous: LevelFields = {
    ...(level !== undefined && { level }),
    ...(claimRate !== undefined && { claimRate }),
    ...(timeToEmpty !== undefined && { timeToEmpty }),
  }
  if (stored.kind === 'unknown') return previous
  const current = currentLevelOf(stored)
  if (level === undefined || current.level === undefined) return current
  const isNear = Math.abs(current.level - level) < spec.target * LEVEL_STEP
  const isSameSide = current.level < spec.lowWater === level < spec.lowWater
  const isSameEmptiness = (current.level === 0) === (level === 0)
  // A change of the rate alone is reported with the next level, unless claims have stopped.
  const isNowIdle = current.claimRate === 0 && claimRate !== 0
  return isNear && isSameSide && isSameEmptiness && !isNowIdle ? previous : current
}

function currentLevelOf(stored: ObservedStore): LevelFields {
  if (stored.kind === 'unknown') return {}
  const { level, rate } = stored.kind === 'present' ? stored : { level: 0, rate: 0 }
  const claimRate = roundToTwoDigits(rate * 3600)
  const timeToEmpty = claimRate === 0 ? 'never' : formatDuration((level / claimRate) * 3600)
  return { level, claimRate, timeToEmpty }
}

function roundToTwoDigits(value: number): number {
  if (value <= 0) return 0
  const scale = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1)
  return Math.round(value / scale) * scale
}

/** A duration in its two largest units, such as `3d4h`. */
export function formatDuration(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ] as const
  const first = units.findIndex(([, size]) => seconds >= size)
  if (first < 0) return '0s'
  let rest = seconds
  const components = units.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(rest / size)
    rest -= count * size
    return count === 0 ? '' : `${count}${unit}`
  })
  return components.join('')
}

function renderOutcome(outcome: RefillOutcome): NonNullable<CodePoolStatus['lastRefill']> {
  const { refill, job, inputs, reason, message } = outcome
  return {
    refill,
    job,
    inputs,
    outcome: outcome.outcome,
    startedAt: formatTime(outcome.startedMs),
    finishedAt: formatTime(outcome.finishedMs),
    ...(reason !== '' && { reason }),
    ...(message !== '' && { message: message.slice(0, 1024) }),
  }
}
