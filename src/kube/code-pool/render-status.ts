// The status of a CodePool from what was seen and decided. Numbers that follow the traffic are told
// coarsely, so that a status is written when it says something new, not at every claim.
import { poolConditions } from '../../codes/pool-conditions.ts'
import type { PoolSight, RefillOutcome, RefillPlan, StoredSight } from '../../codes/refill-sight.ts'
import { mergeConditions, secondTime } from '../conditions.ts'
import type { Condition } from '../objects.ts'
import type { CodePool, CodePoolStatus } from './code-pool.ts'

/** A level is told anew when it differs by this part of the target. */
const LEVEL_STEP = 0.05

/** The status to be told. */
export function renderStatus(
  pool: CodePool,
  given: { seen: PoolSight; plan: RefillPlan; storeName: string; nowMs: number },
): CodePoolStatus {
  const { seen, plan, storeName, nowMs } = given
  const generation = pool.metadata.generation ?? 0
  const before = pool.status ?? {}
  const { last, begun, failures } = plan.history
  const conditions = poolConditions(seen, plan, nowMs)
  return {
    observedGeneration: generation,
    storeName,
    ...(plan.news.length > 0 ? figuresOf(seen.stored) : renderLevel(pool, seen.stored)),
    refills: begun,
    failures,
    ...(last !== null && { lastRefill: renderOutcome(last) }),
    conditions: mergeConditions((before.conditions ?? []) as readonly Condition[], conditions, {
      nowMs,
      generation,
    }),
  }
}

type Figures = Pick<CodePoolStatus, 'level' | 'claimRate' | 'timeToEmpty'>

/** The figures to tell: those told before where nothing much has changed. */
function renderLevel({ spec, status = {} }: CodePool, stored: StoredSight): Figures {
  const { level, claimRate, timeToEmpty } = status
  const told: Figures = {
    ...(level !== undefined && { level }),
    ...(claimRate !== undefined && { claimRate }),
    ...(timeToEmpty !== undefined && { timeToEmpty }),
  }
  if (stored.kind === 'unknown') return told
  const now = figuresOf(stored)
  if (level === undefined || now.level === undefined) return now
  const isNear = Math.abs(now.level - level) < spec.target * LEVEL_STEP
  const isSameSide = now.level < spec.lowWater === level < spec.lowWater
  const isBottom = now.level === 0 && level !== 0
  // A rate that moved alone is no news; it is told with the next level.
  const isResting = now.claimRate === 0 && claimRate !== 0
  return isNear && isSameSide && !isBottom && !isResting ? told : now
}

/** The figures as they are. */
function figuresOf(stored: StoredSight): Figures {
  if (stored.kind === 'unknown') return {}
  const { level, rate } = stored.kind === 'there' ? stored : { level: 0, rate: 0 }
  const claimRate = twoDigits(rate * 3600)
  const timeToEmpty = claimRate === 0 ? 'not emptying' : spanOf((level / claimRate) * 3600)
  return { level, claimRate, timeToEmpty }
}

function twoDigits(value: number): number {
  if (value <= 0) return 0
  const scale = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1)
  return Math.round(value / scale) * scale
}

/** A span in its two largest units, such as `3d4h`. */
export function spanOf(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ] as const
  const first = units.findIndex(([, size]) => seconds >= size)
  if (first < 0) return '0s'
  let left = seconds
  const parts = units.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(left / size)
    left -= count * size
    return count === 0 ? '' : `${count}${unit}`
  })
  return parts.join('')
}

function renderOutcome(outcome: RefillOutcome): NonNullable<CodePoolStatus['lastRefill']> {
  const { refill, job, inputs, reason, message } = outcome
  return {
    refill,
    job,
    inputs,
    outcome: outcome.outcome,
    startedAt: secondTime(outcome.startedMs),
    finishedAt: secondTime(outcome.finishedMs),
    ...(reason !== '' && { reason }),
    ...(message !== '' && { message: message.slice(0, 1024) }),
  }
}

/** Whether two statuses say the same. */
export function saysSame(one: CodePoolStatus | undefined, other: CodePoolStatus): boolean {
  return sorted(one) === sorted(other)
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
