// Several limiters on one store of counters that is slow, loses calls and is left alone at times:
// the real decisions, over a store and a clock of the test's own. What a limiter sends arrives in
// its order; nothing else is certain.
import { createDecideLimits } from '../../src/limiter/decide/decide-limits.ts'
import type { GuardedStore, Undecided } from '../../src/limiter/decide/guard-store.ts'
import type { Decision } from '../../src/limits/algorithm.ts'
import type { CounterHits } from '../../src/limits/counter-store.ts'
import { parseRules } from '../../src/limits/rules.ts'
import type { DecideLimits } from '../../src/limits/verdict.ts'
import {
  createMemoryCounterStore,
  type MemoryCounterStore,
} from '../../src/stores/memory/counter-store.ts'

/** As in the limiter: how long a call is waited for, and when a store counts as silent. */
const DEADLINE_MS = 15
const SILENT_MS = 1000

/** How the store treats the calls of one limiter. */
export interface Behaviour {
  /** Until it has counted a call, and the same again until its answer is there. */
  delayMs: number
  /** Calls fail: `before` they are counted, or `after` it. */
  loses: 'nothing' | 'before' | 'after'
  /** Whether the limiter leaves the store alone. */
  isLeftAlone: boolean
}

interface UnderWay {
  readonly charges: readonly CounterHits[]
  readonly loses: Behaviour['loses']
  readonly countedAtMs: number
  readonly answeredAtMs: number
  readonly isLate: () => void
  readonly answer: (decisions: readonly Decision[] | undefined) => void
  decisions: readonly Decision[] | undefined
  isCounted: boolean
}

/** A limiter in its world. */
export interface SimulatedLimiter {
  readonly behaviour: Behaviour
  /** Whether a call of this client is admitted. */
  readonly ask: (client: string) => Promise<boolean>
  /** Lets happen what is due. */
  readonly advance: () => void
}

/** Some limiters of one rule on one store; `tick` lets a millisecond pass. */
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
      local: createMemoryCounterStore({ nowUs }),
      denied: undefined,
      record: () => undefined,
      onUnknownDomain: () => undefined,
      onGlobalShadow: () => undefined,
      renderHeaders: () => ({ headers: [], body: undefined }),
      renderMetadata: () => undefined,
      nowUs,
      options: { isShadow: false, isQuota: false, denyConsumes: true, replicas },
    })
    return {
      behaviour: channel.behaviour,
      ask: askerOf(decide),
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

function askerOf(decide: DecideLimits) {
  return async (client: string) => {
    const descriptors = [{ entries: [{ key: 'client', value: client }] }]
    return (await decide({ domain: 'shop', descriptors, hits: 1 })).code === 'OK'
  }
}

/** What lies between one limiter and the store. */
function openChannel({ clock, shared }: { clock: { ms: number }; shared: MemoryCounterStore }) {
  const behaviour: Behaviour = { delayMs: 1, loses: 'nothing', isLeftAlone: false }
  let underWay: UnderWay[] = []
  let askedMs: number | undefined
  const send = (charges: readonly CounterHits[]) => {
    askedMs ??= clock.ms
    const last = underWay.at(-1)
    const countedAtMs = Math.max(last?.countedAtMs ?? 0, clock.ms + behaviour.delayMs)
    const answeredAtMs = Math.max(last?.answeredAtMs ?? 0, clock.ms + 2 * behaviour.delayMs)
    return new Promise<readonly Decision[] | Undecided>((resolve) => {
      const later = new Promise<readonly Decision[] | undefined>((resolveLater) => {
        underWay.push({
          charges,
          loses: behaviour.loses,
          countedAtMs,
          answeredAtMs,
          isCounted: false,
          decisions: undefined,
          isLate: () => {
            resolve({ later })
          },
          answer: (decisions) => {
            resolve(decisions ?? { later })
            resolveLater(decisions)
          },
        })
      })
      if (behaviour.delayMs * 2 > DEADLINE_MS) {
        const one = underWay.at(-1)
        if (one !== undefined) lateOnes.push({ atMs: clock.ms + DEADLINE_MS, isLate: one.isLate })
      }
    })
  }
  const lateOnes: { atMs: number; isLate: () => void }[] = []
  const store: GuardedStore = {
    decide: (charges) =>
      behaviour.isLeftAlone ? Promise.resolve({ later: undefined }) : send(charges),
    isOpen: () => behaviour.isLeftAlone,
    isUnresponsive: () => askedMs !== undefined && clock.ms - askedMs >= SILENT_MS,
    stop: () => Promise.resolve(),
  }
  const advance = () => {
    while ((lateOnes[0]?.atMs ?? Infinity) <= clock.ms) lateOnes.shift()?.isLate()
    for (const one of underWay) {
      if (one.countedAtMs > clock.ms) break
      if (!one.isCounted && one.loses !== 'before') one.decisions = shared.consumeNow(one.charges)
      one.isCounted = true
    }
    const isDue = ({ answeredAtMs }: UnderWay) => answeredAtMs <= clock.ms
    const due = underWay.filter(isDue)
    underWay = underWay.filter((one) => !isDue(one))
    for (const { answer, decisions, loses } of due) {
      askedMs = undefined
      answer(loses === 'nothing' ? decisions : undefined)
    }
  }
  return { behaviour, store, advance }
}
