// A model of the allowance for one client: Envoys with their buckets, the limiter's bucket, calls
// without a response, lost Redis, restarts and evictions, in every order. The rule is split by the
// real splitRule().
import { type Bucket, splitRule, type SplitRule } from '../../envoy/allowance.ts'
import type { Model } from './explore.ts'

/** An Envoy's buckets of the client. */
interface Envoy {
  /** Tokens of the allowance, in sixtieths. */
  readonly allowance: number
  /** Tokens of the local limit, which applies if the limiter does not respond. */
  readonly local: number
  /** Requests admitted without the limiter that the local limit has not refilled yet. */
  readonly localDebt: number
}

/** The buckets, and what the invariants need. */
export interface AllowanceState {
  /** Sorted, as the Envoys are equal. */
  readonly envoys: readonly Envoy[]
  /** The limiter's tokens in Redis. */
  readonly shared: number
  /** The limiter's tokens in its own memory, while Redis is unavailable. */
  readonly own: number | undefined
  /** Requests admitted by allowance or limiter that the rule has not refilled yet. */
  readonly debt: number
  /** Tokens of a client that stays below the lowered rule. */
  readonly below: number
  readonly restarts: number
  readonly outages: number
  readonly problems: readonly string[]
}

/** Sizes, faults, and the mutation of one mutant. A second is one step of the clock. */
export interface AllowanceSetup {
  readonly rule: Bucket
  readonly allowance: { readonly burst: number; readonly perMinute: number }
  readonly envoys: number
  /** The maximum numbers of restarts or evictions, and of outages of Redis. */
  readonly restarts: number
  readonly outages: number
  /** Whether calls may get no response, counted by the limiter or not. */
  readonly mayTimeOut: boolean
  readonly mutateSplit?: (split: SplitRule) => SplitRule
  /** How many allowances a restarted Envoy has; correct: 1. */
  readonly allowancesAfterRestart?: number
}

/** The invariants, by the message that reports a violation. */
export const broken = {
  rule: 'allowance and limiter have admitted more than the rule',
  local: 'an Envoy has admitted more than its local limit without the limiter',
  denied: 'a client below the lowered rule is denied',
} as const

interface Event {
  readonly label: string
  readonly state: AllowanceState
}

/** The model of one client. */
export function allowanceModel(setup: AllowanceSetup): Model<AllowanceState> {
  const correct = splitRule(setup.rule, { allowance: setup.allowance, buckets: setup.envoys })
  const world = { setup, below: correct.limiter, split: setup.mutateSplit?.(correct) ?? correct }
  const { edge, limiter } = world.split
  const envoy = { allowance: 60 * edge.allowanceBurst, local: edge.redirectBurst, localDebt: 0 }
  return {
    initial: {
      envoys: Array.from({ length: setup.envoys }, () => envoy),
      shared: limiter.burst,
      own: undefined,
      debt: 0,
      below: correct.limiter.burst,
      restarts: setup.restarts,
      outages: setup.outages,
      problems: [],
    },
    apply: () => {
      throw new Error('the model has no processes')
    },
    finish: (state) => state,
    events: (state) => [
      second(state, world),
      ...state.envoys.flatMap((_, at) => [
        ...requests(state, at, world),
        ...restarts(state, at, world),
      ]),
      ...outages(state, world),
    ],
    broken: ({ problems, debt, envoys }) => [
      ...problems,
      ...(debt > setup.rule.burst ? [broken.rule] : []),
      ...(envoys.some(({ localDebt }) => localDebt > setup.rule.burst) ? [broken.local] : []),
    ],
  }
}

interface World {
  readonly setup: AllowanceSetup
  readonly split: SplitRule
  /** The lowered rule, whatever the mutant does. */
  readonly below: Bucket
}

const refill = (level: number, { burst, perSecond }: Bucket) => Math.min(burst, level + perSecond)
const repay = (debt: number, by: number) => Math.max(0, debt - by)

/** One second passes: every bucket is refilled. */
function second(state: AllowanceState, { setup, split, below }: World): Event {
  const { edge, limiter } = split
  const local = { burst: edge.redirectBurst, perSecond: edge.redirectPerSecond }
  const allowance = { burst: 60 * edge.allowanceBurst, perSecond: edge.allowancePerMinute }
  const envoys = state.envoys.map((envoy) => ({
    allowance: Math.max(envoy.allowance, refill(envoy.allowance, allowance)),
    local: refill(envoy.local, local),
    localDebt: repay(envoy.localDebt, setup.rule.perSecond),
  }))
  return {
    label: 'a second passes',
    state: sorted({
      ...state,
      envoys,
      shared: refill(state.shared, limiter),
      own: state.own === undefined ? undefined : refill(state.own, limiter),
      debt: repay(state.debt, setup.rule.perSecond),
      below: refill(state.below, below),
    }),
  }
}

/** A request of the client at one Envoy, with every possible outcome. */
function requests(state: AllowanceState, at: number, { setup }: World): Event[] {
  const envoy = state.envoys[at]
  if (envoy === undefined) return []
  const label = `a request at Envoy ${at}`
  if (envoy.allowance >= 60) {
    const used = update(state, at, {
      allowance: envoy.allowance - 60,
      localDebt: envoy.localDebt + 1,
    })
    const next = admitted({ ...used, debt: used.debt + 1 })
    return [{ label: `${label}: within the allowance`, state: sorted(next) }]
  }
  const { shared, own } = state
  const level = own ?? shared
  const isAdmitted = level >= 1
  const left = isAdmitted ? level - 1 : level
  const counted = own === undefined ? { ...state, shared: left } : { ...state, own: left }
  const response = isAdmitted ? admitted({ ...counted, debt: state.debt + 1 }) : denied(counted)
  const events = [{ label: `${label}: the limiter ${isAdmitted ? 'admits' : 'denies'}`, response }]
  if (setup.mayTimeOut) {
    events.push(
      { label: `${label}: not counted, no response`, response: locally(state, at) },
      { label: `${label}: counted, no response`, response: locally(counted, at) },
    )
  }
  return events.map(({ label: what, response: next }) => ({ label: what, state: sorted(next) }))
}

/** The local limit decides, and the request counts as admitted without the limiter. */
function locally(state: AllowanceState, at: number): AllowanceState {
  const envoy = state.envoys[at]
  if (envoy === undefined || envoy.local < 1) return denied(state)
  const { local, localDebt } = envoy
  return admitted(update(state, at, { local: local - 1, localDebt: localDebt + 1 }))
}

/** A restart or an eviction: the buckets of the client are full. The invariants allow for it. */
function restarts(state: AllowanceState, at: number, { setup, split }: World): Event[] {
  const envoy = state.envoys[at]
  if (state.restarts === 0 || envoy === undefined) return []
  const { allowanceBurst, redirectBurst } = split.edge
  const { burst } = setup.allowance
  const allowance = 60 * allowanceBurst * (setup.allowancesAfterRestart ?? 1)
  const fewer = { ...state, restarts: state.restarts - 1, debt: repay(state.debt, burst) }
  const evicted = { allowance, localDebt: repay(envoy.localDebt, burst) }
  return [
    {
      label: `Envoy ${at} evicts the allowance`,
      state: sorted(update(fewer, at, evicted)),
    },
    {
      label: `Envoy ${at} restarts`,
      state: sorted(update(fewer, at, { allowance, local: redirectBurst, localDebt: 0 })),
    },
  ]
}

/**
 * Redis becomes unavailable: the limiter admits what Redis had left, and Redis admits the same
 * number after its recovery, as without the allowance.
 */
function outages(state: AllowanceState, { split }: World): Event[] {
  if (state.own !== undefined) {
    const debt = repay(state.debt, split.limiter.burst)
    return [{ label: 'Redis is available', state: { ...state, own: undefined, debt } }]
  }
  if (state.outages === 0) return []
  const lost = { ...state, own: state.shared, outages: state.outages - 1 }
  return [{ label: 'Redis is lost', state: lost }]
}

function admitted(state: AllowanceState): AllowanceState {
  return { ...state, below: repay(state.below, 1) }
}

function denied(state: AllowanceState): AllowanceState {
  return state.below < 1 ? state : { ...state, problems: [broken.denied] }
}

function update(state: AllowanceState, at: number, change: Partial<Envoy>): AllowanceState {
  const envoys = state.envoys.map((envoy, i) => (i === at ? { ...envoy, ...change } : envoy))
  return { ...state, envoys }
}

function sorted(state: AllowanceState): AllowanceState {
  const keyOf = ({ allowance, local, localDebt }: Envoy) =>
    (allowance * 1000 + local) * 1000 + localDebt
  return { ...state, envoys: [...state.envoys].sort((a, b) => keyOf(a) - keyOf(b)) }
}
