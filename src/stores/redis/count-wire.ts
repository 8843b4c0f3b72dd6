// The arguments of the script that counts hits, as count-calls.lua reads them, and its reply,
// which is fully validated.
import type { Decision, Limit } from '../../limits/algorithm.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'

/** The counter updates of one call. */
export type Call = readonly CounterUpdate[]

/** A limit is deduplicated against this many of the preceding limits. */
const LIMITS_SEARCHED_MAX = 16

const NUMBERS_PER_DECISION = 4

/**
 * The arguments of EVALSHA after the script's SHA. `nowUs` replaces the server's clock, only in
 * tests that compare the script with the algorithms.
 */
export function encodeCalls(
  calls: readonly Call[],
  { keyPrefix, nowUs }: { keyPrefix: string; nowUs?: number | undefined },
): string[] {
  const keys: string[] = []
  const distinctLimits: CounterUpdate[] = []
  const callArguments: string[] = []
  for (const call of calls) {
    callArguments.push(String(call.length))
    for (const update of call) {
      keys.push(keyPrefix + update.key)
      callArguments.push(String(numberOf(update, distinctLimits)), String(update.hits))
    }
  }
  const limits = distinctLimits.flatMap(limitArguments)
  const clock = nowUs === undefined ? '' : String(nowUs)
  return [
    String(keys.length),
    ...keys,
    clock,
    String(distinctLimits.length),
    ...limits,
    ...callArguments,
  ]
}

/** The number of an update's limit, from 1; appends a new limit. */
function numberOf(update: CounterUpdate, distinctLimits: CounterUpdate[]): number {
  const { limit, algorithm, veto } = update
  const lastIndex = distinctLimits.length - 1
  for (let at = lastIndex; at >= 0 && at > lastIndex - LIMITS_SEARCHED_MAX; at--) {
    const other = distinctLimits[at]
    if (other?.limit === limit && other.algorithm === algorithm && other.veto === veto) {
      return at + 1
    }
  }
  return distinctLimits.push(update)
}

const argumentsOfLimit = new WeakMap<Limit, readonly string[]>()

function limitArguments({ algorithm, limit, veto }: CounterUpdate): readonly string[] {
  let cached = argumentsOfLimit.get(limit)
  if (cached?.[0] !== algorithm.name) {
    const { requests, windowUs, burst, denyConsumes } = limit
    const own = algorithm.scriptNumbers(limit)
    const numbers = [requests, windowUs, burst, denyConsumes ? 1 : 0, own.length, ...own]
    cached = [algorithm.name, ...numbers.map(String)]
    argumentsOfLimit.set(limit, cached)
  }
  return [veto, ...cached]
}

/** The decisions of each call. Throws an Error if the reply is invalid. */
export function decodeReply(reply: unknown, calls: readonly Call[]): Decision[][] {
  const decisions = calls.reduce((sum, call) => sum + call.length, 0)
  const numbers = decisions * NUMBERS_PER_DECISION + 1
  if (!Array.isArray(reply) || reply.length !== numbers) {
    throw new Error(`the reply is not a list of ${numbers} numbers`)
  }
  const decidedAtUs = wholeNumber(reply[numbers - 1])
  let at = 0
  return calls.map((call) =>
    call.map(() => {
      const decision = decodeDecision(reply, at, decidedAtUs)
      at += NUMBERS_PER_DECISION
      return decision
    }),
  )
}

function decodeDecision(reply: readonly unknown[], at: number, decidedAtUs: number): Decision {
  const remaining = wholeNumber(reply[at])
  const resetUs = wholeNumber(reply[at + 1])
  const over = wholeNumber(reply[at + 2])
  const waitUs = reply[at + 3] === -1 ? Infinity : wholeNumber(reply[at + 3])
  return {
    admitted: waitUs === 0,
    remaining,
    over,
    resetUs,
    retryAfterUs: waitUs,
    next: undefined,
    expiresInUs: 0,
    decidedAtUs,
  }
}

function wholeNumber(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  const found = `${typeof value} ${String(value)}`
  throw new Error(`the reply contains ${found} instead of a non-negative integer`)
}
