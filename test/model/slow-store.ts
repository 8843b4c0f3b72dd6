// Several limiters with one counter store that is slow, loses calls and is at times behind an open
// circuit breaker: the real decisions over a simulated store and clock. Only the order of the calls
// of one limiter is guaranteed.
import { createDecideLimits } from '../../src/limiter/decide/decide-limits.ts'
import { createLocalShares } from '../../src/limiter/decide/local-shares.ts'
import type { GuardedStore, Undecided } from '../../src/limiter/decide/guard-store.ts'
import type { Decision } from '../../src/limits/algorithm.ts'
import type { CounterUpdate } from '../../src/limits/counter-store.ts'
import { parseRules } from '../../src/limits/parse-rules.ts'
import type { DecideLimits } from '../../src/limits/verdict.ts'
import {
  createMemoryCounterStore,
  type MemoryCounterStore,
} from '../../src/stores/memory/counter-store.ts'

/** As in the limiter: the deadline of a call, and the time until a store counts as unresponsive. */
const DEADLINE_MS = 15
const UNRESPONSIVE_MS = 1000

/** The store's behavior for one limiter. */
export interface Behaviour {
  /** The time until the store counts a call, and the same time until its response arrives. */
  delayMs: number
  /** Whether calls fail: `before` the store counts them, or `after` it. */
  loses: 'nothing' | 'before' | 'after'
  /** Whether the circuit breaker of the limiter is open. */
  isOpen: boolean
}

interface InFlight {
  readonly updates: readonly CounterUpdate[]
  readonly loses: Behaviour['loses']
  readonly countedAtMs: number
  readonly respondsAtMs: number
  readonly onTimeout: () => void
  readonly respond: (decisions: readonly Decision[] | undefined) => void
  decisions: readonly Decision[] | undefined
  isCounted: boolean
}

/** A simulated limiter. */
export interface SimulatedLimiter {
  readonly behaviour: Behaviour
  /** Sends a request of this client; whether it is admitted. */
  readonly request: (client: string) => Promise<boolean>
  /** Processes the calls that are due. */
  readonly advance: () => void
}

/** Several limiters with one rule and one store; `tick` advances the clock by 1 ms. */
export function simulate({ rule, replicas }: { rule: string; replicas: number }) {
  const clock = { ms: 0 }
  const nowUs = () => 1_790_000_000_000_000 + clock.ms * 1000
  const shared = createMemoryCounterStore({ nowUs })
  const parsed = parseRules(
    [
      {
        name: 'rules.yaml',
        text: `domain: shop\ndescriptors:\n  - key: client\n    rate_limit: ${rule}`,
      },
    ],
    { mergeDomains: false },
  )
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  const limiters = Array.from({ length: replicas }, (): SimulatedLimiter => {
    const channel = openChannel({ clock, shared })
    const decide = createDecideLimits({
      rules: () => parsed.rules,
      store: channel.store,
      shares: createLocalShares({
        replicas,
        local: createMemoryCounterStore({ nowUs }),
        pending: createMemoryCounterStore({ nowUs }),
        isUnresponsive: () => channel.store.isUnresponsive(),
        nowUs,
      }),
      denyCache: undefined,
      record: () => undefined,
      onUnknownDomain: () => undefined,
      onGlobalShadow: () => undefined,
      renderResponse: () => ({ headers: [], body: undefined }),
      renderMetadata: () => undefined,
      nowUs,
      options: { areAllShadow: false, areAllQuotas: false, denyConsumes: true },
    })
    return {
      behaviour: channel.behaviour,
      request: requesterOf(decide),
      advance: channel.advance,
    }
  })
  const tick = async () => {
    clock.ms++
    for (const { advance } of limiters) advance()
    await new Promise(setImmediate)
  }
  return { limiters, tick, clock }
}

function requesterOf(decide: DecideLimits) {
  return async (client: string) => {
    const descriptors = [{ entries: [{ key: 'client', value: client }] }]
    return (await decide({ domain: 'shop', descriptors, hits: 1 })).code === 'OK'
  }
}

/** The connection of one limiter to the store. */
function openChannel({ clock, shared }: { clock: { ms: number }; shared: MemoryCounterStore }) {
  const behaviour: Behaviour = { delayMs: 1, loses: 'nothing', isOpen: false }
  let inFlight: InFlight[] = []
  let sentMs: number | undefined
  const send = (updates: readonly CounterUpdate[]) => {
    sentMs ??= clock.ms
    const last = inFlight.at(-1)
    const countedAtMs = Math.max(last?.countedAtMs ?? 0, clock.ms + behaviour.delayMs)
    const respondsAtMs = Math.max(last?.respondsAtMs ?? 0, clock.ms + 2 * behaviour.delayMs)
    return new Promise<readonly Decision[] | Undecided>((resolve) => {
      const delayedResult = new Promise<readonly Decision[] | undefined>((resolveDelayed) => {
        inFlight.push({
          updates,
          loses: behaviour.loses,
          countedAtMs,
          respondsAtMs,
          isCounted: false,
          decisions: undefined,
          onTimeout: () => {
            resolve({ delayedResult })
          },
          respond: (decisions) => {
            resolve(decisions ?? { delayedResult })
            resolveDelayed(decisions)
          },
        })
      })
      if (behaviour.delayMs * 2 > DEADLINE_MS) {
        const one = inFlight.at(-1)
        if (one !== undefined)
          timeouts.push({ atMs: clock.ms + DEADLINE_MS, onTimeout: one.onTimeout })
      }
    })
  }
  const timeouts: { atMs: number; onTimeout: () => void }[] = []
  const store: GuardedStore = {
    decide: (updates) =>
      behaviour.isOpen ? Promise.resolve({ delayedResult: undefined }) : send(updates),
    isOpen: () => behaviour.isOpen,
    isUnresponsive: () => sentMs !== undefined && clock.ms - sentMs >= UNRESPONSIVE_MS,
    stop: () => Promise.resolve(),
  }
  const advance = () => {
    while ((timeouts[0]?.atMs ?? Infinity) <= clock.ms) timeouts.shift()?.onTimeout()
    for (const one of inFlight) {
      if (one.countedAtMs > clock.ms) break
      if (!one.isCounted && one.loses !== 'before') one.decisions = shared.consumeNow(one.updates)
      one.isCounted = true
    }
    const isDue = ({ respondsAtMs }: InFlight) => respondsAtMs <= clock.ms
    const due = inFlight.filter(isDue)
    inFlight = inFlight.filter((one) => !isDue(one))
    for (const { respond, decisions, loses } of due) {
      sentMs = undefined
      respond(loses === 'nothing' ? decisions : undefined)
    }
  }
  return { behaviour, store, advance }
}
