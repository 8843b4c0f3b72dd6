// The decide use case with real rules and in-memory counters, for unit tests, which control its
// clock and the availability of its store.
import {
  createResponseRenderer,
  type MetadataSource,
  renderMetadata,
} from '../../../src/limiter/decide/client-response.ts'
import {
  createDecideLimits,
  type DecisionSource,
} from '../../../src/limiter/decide/decide-limits.ts'
import type { GuardedStore } from '../../../src/limiter/decide/guard-store.ts'
import { createDenyCache } from '../../../src/limiter/decide/deny-cache.ts'
import { createResetLimits } from '../../../src/limiter/decide/reset-limits.ts'
import { createLocalShares } from '../../../src/limiter/decide/local-shares.ts'
import type { Decision } from '../../../src/limits/algorithm.ts'
import type { CounterStore, CounterUpdate } from '../../../src/limits/counter-store.ts'
import type { Descriptor } from '../../../src/limits/descriptor.ts'
import type { Check } from '../../../src/limits/plan-checks.ts'
import { parseRules } from '../../../src/limits/parse-rules.ts'
import { createMemoryCounterStore } from '../../../src/stores/memory/counter-store.ts'

/** The initial time of the clock. */
export const START_US = 1_790_000_000_000_000

/** Parses rules. Throws if they have faults. */
function rulesOf(text: string) {
  const parsed = parseRules([{ name: 'rules.yaml', text }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  return parsed.rules
}

const referenceNames = {
  limit: 'RateLimit-Limit',
  remaining: 'RateLimit-Remaining',
  reset: 'RateLimit-Reset',
}

interface Options {
  readonly isShadow?: boolean
  readonly isQuota?: boolean
  readonly replicas?: number
  readonly hasDenyCache?: boolean
  readonly hasReferenceMetadata?: boolean
  readonly hasMetadata?: boolean
  readonly denyConsumes?: boolean
  /** Whether responses also have the headers of envoyproxy/ratelimit, by its names. */
  readonly hasReferenceHeaders?: boolean
}

/** The counters of a limiter, with a store that a test can make unavailable. */
function openCounters(replicas: number, nowUs: () => number) {
  const shared = createMemoryCounterStore({ nowUs })
  const local = createMemoryCounterStore({ nowUs })
  const store = { isUnavailable: false, calls: [] as (readonly CounterUpdate[])[] }
  const countedLocally: (readonly CounterUpdate[])[] = []
  const shares = createLocalShares({
    replicas,
    local: {
      ...local,
      consumeNow(hits) {
        countedLocally.push(hits)
        return local.consumeNow(hits)
      },
    },
    pending: createMemoryCounterStore({ nowUs }),
    isUnresponsive: () => store.isUnavailable,
    nowUs,
  })
  const guarded: GuardedStore & Pick<CounterStore, 'reset'> = {
    decide: (hits) => {
      store.calls.push(hits)
      const decided = store.isUnavailable ? { delayedResult: undefined } : shared.consumeNow(hits)
      return Promise.resolve(decided)
    },
    isOpen: () => store.isUnavailable,
    isUnresponsive: () => store.isUnavailable,
    stop: () => Promise.resolve(),
    reset: (updates) =>
      store.isUnavailable ? Promise.reject(new Error('unavailable')) : shared.reset(updates),
  }
  return { store, guarded, shares, countedLocally }
}

/** How responses are rendered. */
function renderersOf(options: Options, nowUs: () => number) {
  const { hasReferenceMetadata = false, hasMetadata: hasOwnMetadata = true } = options
  return {
    renderResponse: createResponseRenderer({
      hasClientHeaders: true,
      referenceHeaders: options.hasReferenceHeaders === true ? referenceNames : undefined,
      areAllQuotas: options.isQuota ?? false,
      renderBody: ({ rule }) => ({ type: 'application/problem+json', body: `{"rule":"${rule}"}` }),
      nowMs: () => nowUs() / 1000,
    }),
    renderMetadata: (source: MetadataSource) =>
      renderMetadata({ hasReferenceMetadata, hasOwnMetadata }, source),
  }
}

/** A limiter with these rules; the test controls its clock and its store. */
export function limiterOf(text: string, options: Options = {}) {
  const { isShadow = false, isQuota = false, replicas = 1, hasDenyCache = false } = options
  const { denyConsumes = true } = options
  const clock = { nowUs: START_US }
  const nowUs = () => clock.nowUs
  const { store, guarded, shares, countedLocally } = openCounters(replicas, nowUs)
  const recorded: [string, DecisionSource, boolean][] = []
  const unknownDomains: string[] = []
  let shadowed = 0
  const rules = rulesOf(text)
  const deps = {
    rules: () => rules,
    store: guarded,
    shares,
    denyCache: hasDenyCache ? createDenyCache(100_000) : undefined,
    options: { areAllShadow: isShadow, areAllQuotas: isQuota, denyConsumes },
  }
  const decide = createDecideLimits({
    ...deps,
    ...renderersOf(options, nowUs),
    record: ({ rule }: Check, { admitted }: Decision, by) => {
      recorded.push([rule.path, by, admitted])
    },
    onUnknownDomain: (domain) => unknownDomains.push(domain),
    onGlobalShadow: () => {
      shadowed++
    },
    nowUs,
  })
  const request = (...descriptors: readonly (Record<string, string> | Descriptor)[]) =>
    decide({
      domain: 'shop',
      descriptors: descriptors.map(
        (one) => ('entries' in one ? one : entriesOf(one)) as Descriptor,
      ),
      hits: 1,
    })
  const resetLimits = createResetLimits({ ...deps, log: { warn: () => undefined } })
  const reset = (pairs: Record<string, string>) =>
    resetLimits({ domain: 'shop', descriptor: entriesOf(pairs) })
  const observed = { recorded, countedLocally, unknownDomains, shadowed: () => shadowed }
  return { decide, request, reset, clock, store, ...observed }
}

/** A descriptor of these entries. */
export function entriesOf(pairs: Record<string, string>, hits?: number): Descriptor {
  const entries = Object.entries(pairs).map(([key, value]) => ({ key, value }))
  return { entries, hits }
}

/** Two rules that many tests use. */
export const perClient = `
domain: shop
descriptors:
  - key: client
    rate_limit: {unit: minute, requests_per_unit: 2}
  - key: total
    rate_limit:
      {name: total, algorithm: token_bucket, unit: second, requests_per_unit: 1, burst: 10}
`
