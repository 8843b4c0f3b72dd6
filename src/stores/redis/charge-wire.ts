// What is sent to the script of the charges, and what it answers: arguments as charge-calls.lua
// reads them, and a reply of which nothing is believed that it cannot have said.
import type { Decision, Limit } from '../../limits/algorithm.ts'
import type { CounterCharge } from '../../limits/counter-store.ts'
import { partsOf } from '../../limits/token-bucket.ts'

/** The charges of one call. */
export type Call = readonly CounterCharge[]

/** So many of the limits named last are looked through for the one of a charge. */
const LIMITS_LOOKED_AT_MAX = 16

const NUMBERS_PER_DECISION = 4

/**
 * Arguments of EVALSHA that follow the script's name. `nowUs` is put in place of the server's
 * clock: for tests that compare the script with the algorithms, and for nothing else.
 */
export function encodeCalls(
  calls: readonly Call[],
  { keyPrefix, nowUs }: { keyPrefix: string; nowUs?: number | undefined },
): string[] {
  const keys: string[] = []
  const limited: CounterCharge[] = []
  const asked: string[] = []
  for (const call of calls) {
    asked.push(String(call.length))
    for (const charge of call) {
      keys.push(keyPrefix + charge.key)
      asked.push(String(numberOf(charge, limited)), String(charge.cost))
    }
  }
  const limits = limited.flatMap(limitArguments)
  const clock = nowUs === undefined ? '' : String(nowUs)
  return [String(keys.length), ...keys, clock, String(limited.length), ...limits, ...asked]
}

/** Number of the limit of a charge, from 1; puts it down where it is a new one. */
function numberOf(charge: CounterCharge, limited: CounterCharge[]): number {
  const { limit, algorithm, veto } = charge
  const last = limited.length - 1
  for (let at = last; at >= 0 && at > last - LIMITS_LOOKED_AT_MAX; at--) {
    const other = limited[at]
    if (other?.limit === limit && other.algorithm === algorithm && other.veto === veto) {
      return at + 1
    }
  }
  return limited.push(charge)
}

const numbersOfLimit = new WeakMap<Limit, readonly string[]>()

function limitArguments({ algorithm, limit, veto }: CounterCharge): readonly string[] {
  let numbers = numbersOfLimit.get(limit)
  if (numbers === undefined) {
    const { requests, windowUs, burst, denyConsumes } = limit
    const { hitParts, drainParts } = partsOf(limit)
    const parts = [requests, windowUs, burst, hitParts, drainParts, denyConsumes ? 1 : 0]
    numbers = parts.map(String)
    numbersOfLimit.set(limit, numbers)
  }
  return [algorithm.name, ...numbers, veto]
}

/** The decisions of each call. Throws an Error where the reply is not what the script answers. */
export function decodeReply(reply: unknown, calls: readonly Call[]): Decision[][] {
  const charges = calls.reduce((sum, call) => sum + call.length, 0)
  const numbers = charges * NUMBERS_PER_DECISION + 1
  if (!Array.isArray(reply) || reply.length !== numbers) {
    throw new Error(`the reply is no list of ${numbers} numbers`)
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
  throw new Error(`the reply holds ${typeof value} ${String(value)} in place of a number`)
}
