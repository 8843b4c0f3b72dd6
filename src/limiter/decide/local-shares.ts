// What one of several limiters may admit by itself while the store is slow or away: a part of what
// the store last said remains. Hits that it has admitted are pending, and taken off that part,
// until the store says what remains after them.
import { LRUCache } from 'lru-cache'
import type { Decision, Limit } from '../../limits/algorithm.ts'
import type { CounterCharge } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'

/** What the store made of the charges of one call; `undefined`: it failed, or was never asked. */
type Answer = readonly Decision[] | undefined

/** Counters of this process alone. */
export interface LocalCounters {
  chargeNow(charges: readonly CounterCharge[]): readonly Decision[]
  /** Overwrites a counter so that `remaining` hits remain of its limit, or all if that is fewer. */
  keepRemaining(charge: CounterCharge, remaining: number): void
}

/** What the parts need. */
export interface LocalSharesOptions {
  /** How many processes share each limit. */
  readonly replicas: number
  readonly local: LocalCounters
  /** Whether the store answers nobody any more, so that it admits nothing either. */
  readonly isSilent: () => boolean
  /** Never set back. */
  readonly nowUs: () => number
}

/** The shares of this process. */
export interface LocalShares {
  /** Remembers what the store decided. */
  note(charges: readonly CounterCharge[], decisions: readonly Decision[]): void
  /** Decides a call without the store; `later` is what the same charges come to there. */
  charge(charges: readonly CounterCharge[], later: Promise<Answer> | undefined): readonly Decision[]
}

/**
 * The part of what remains that all processes together admit by themselves while the store still
 * answers, as it may admit all of it too: 1.2 times the limit at most, and one hit of each process.
 */
const SLOW_PART = 0.2
const COUNTERS_MAX = 50_000

/** What is known of one counter. */
interface Known {
  /** What the store last said remains; the whole limit, if it has said nothing. */
  remaining: number
  /** By then the whole limit is free again. */
  untilUs: number
  /** Hits admitted here, of which the store has not said that it counted them. */
  pending: number
  /** Why the local counter was set from this, if it was. */
  setFor: 'slow' | 'silent' | undefined
}

/** Makes the shares; nothing is known yet. */
export function createLocalShares(options: LocalSharesOptions): LocalShares {
  const { replicas, local, isSilent, nowUs } = options
  const counters = new LRUCache<string, Known>({ max: COUNTERS_MAX })
  const shareOf = sharedAmong(replicas)

  const note = (key: string, { remaining, resetUs }: Decision, atUs: number) => {
    const known = counters.get(key)
    if (known === undefined || known.untilUs <= atUs) {
      if (resetUs > 0) counters.set(key, knownOf(remaining, atUs + resetUs))
      return
    }
    known.remaining = remaining
    known.untilUs = Math.max(known.untilUs, atUs + resetUs) // what is pending may be later
    known.setFor = undefined
  }
  const noteAll = (charges: readonly CounterCharge[], decisions: readonly Decision[]) => {
    const atUs = nowUs()
    decisions.forEach((decision, at) => {
      const charge = charges[at]
      if (charge !== undefined) note(charge.key, decision, atUs)
    })
  }
  /** What is known of a counter whose local counter is set from that. */
  const prepare = (charge: CounterCharge): Known => {
    const [why, atUs] = [isSilent() ? 'silent' : 'slow', nowUs()] as const
    let known = counters.get(charge.key)
    if (known === undefined || known.untilUs <= atUs) {
      known = knownOf(freshRemaining(charge, atUs), atUs)
      counters.set(charge.key, known)
    }
    if (known.setFor !== why) {
      local.keepRemaining(shareOf(charge), allowed(known, { why, replicas }))
      known.setFor = why
    }
    return known
  }
  return {
    note: noteAll,
    charge(charges, later) {
      const known = charges.map(prepare)
      const decisions = local.chargeNow(charges.map(shareOf))
      const isAdmitted = !isDenied(charges, decisions)
      const pending = known.map((one, at) => {
        const { admitted = false, resetUs = 0 } = decisions[at] ?? {}
        const hits = isAdmitted && admitted ? Math.max(0, charges[at]?.cost ?? 0) : 0
        one.pending += hits
        one.untilUs = Math.max(one.untilUs, nowUs() + resetUs)
        return hits
      })
      // It never rejects, and is bounded as the call to the store is.
      void later?.then((answer) => {
        if (answer === undefined) return // who knows whether it counted them
        known.forEach((one, at) => {
          one.pending -= pending[at] ?? 0
        })
        noteAll(charges, answer)
      })
      return decisions
    },
  }
}

function knownOf(remaining: number, untilUs: number): Known {
  return { remaining, untilUs, pending: 0, setFor: undefined }
}

/** The hits of one counter that may be admitted now. */
function allowed(
  { remaining, pending }: Known,
  { why, replicas }: { why: 'slow' | 'silent'; replicas: number },
): number {
  if (remaining < 1) return 0
  const part = why === 'silent' || replicas === 1 ? 1 : SLOW_PART
  return Math.max(0, Math.max(1, Math.floor((part * remaining) / replicas)) - pending)
}

/** What the whole limit admits of a counter that was never used. */
function freshRemaining({ algorithm, limit }: CounterCharge, nowUs: number): number {
  return algorithm.decide({ state: undefined, cost: 0, nowUs, limit }).remaining
}

/** Against the part of its limit that each of several processes gives, knowing of no other. */
function sharedAmong(replicas: number): (charge: CounterCharge) => CounterCharge {
  if (replicas === 1) return (charge) => charge
  const shares = new WeakMap<Limit, Limit>() // forgotten with the rules
  const part = (whole: number) => (whole === 0 ? 0 : Math.max(1, Math.floor(whole / replicas)))
  return (charge) => {
    const { limit } = charge
    let share = shares.get(limit)
    if (share === undefined) {
      share = { ...limit, requests: part(limit.requests), burst: part(limit.burst) }
      shares.set(limit, share)
    }
    return { ...charge, limit: share }
  }
}
