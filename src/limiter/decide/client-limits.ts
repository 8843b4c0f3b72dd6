// Rate limits by client within one process: decides each request synchronously in memory, with the
// rule format and the algorithms of the rate-limit service, but without calling it.
import { LRUCache } from 'lru-cache'
import type { Decision } from '../../limits/algorithm.ts'
import { clientKeyOf } from '../../limits/client-address.ts'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { findNode, valueToMatch } from '../../limits/match.ts'
import { type Check, pairDecisions, planChecks } from '../../limits/plan-checks.ts'
import type { Rule, RuleSet } from '../../limits/rule.ts'
import { listRules } from '../../limits/rule-tree.ts'
import { codeOf, type ReportedLimit, reportedLimitOf } from '../../limits/verdict.ts'

/** The domain of the rules for clients. */
export const CLIENT_DOMAIN = 'curtail'

/** Values of the descriptor key `route`. */
const limitedRoutes = ['create', 'report', 'redirect', 'unknown'] as const
type LimitedRoute = (typeof limitedRoutes)[number]

/** The limits that one request counts against; they are decided together. */
interface PlannedLimits {
  readonly checks: readonly Check[]
  readonly updates: readonly CounterUpdate[]
}

/** A client with the limits of its requests; shared by all its connections. */
export interface LimitedClient {
  /** The value of the descriptor key `client`. */
  readonly key: string
  readonly create: PlannedLimits
  readonly report: PlannedLimits
  /** The limits for any lookup of a code: route `redirect`. */
  readonly lookup: PlannedLimits
  /** The limits for a lookup of an unknown code: route `unknown`. */
  readonly miss: PlannedLimits
  /** The same counters with 0 hits: a client that exceeds them is denied every lookup. */
  readonly missPeek: PlannedLimits
}

/** Counters of this process. */
interface LocalStore {
  /** Counts the hits of one request, and decides them together. */
  consumeNow(updates: readonly CounterUpdate[]): readonly Decision[]
  /** Whether a counter has been written and not evicted; it may have expired. */
  hasCounter(key: string): boolean
}

/** The decision for one request. */
export interface ClientVerdict {
  readonly admitted: boolean
  /** The limit to report to the client; `undefined`: no limit applies. */
  readonly reported: ReportedLimit | undefined
}

/** Limits by client. */
export interface ClientLimits {
  /** The client of a peer address; callers keep it for the lifetime of the connection. */
  clientOf(address: string): LimitedClient
  /** Decides a request that creates a link, with the API key of this name, and counts it. */
  countCreate(client: LimitedClient, apiKeyName?: string): ClientVerdict
  /** Decides a report of abuse, and counts it. */
  countReport(client: LimitedClient): ClientVerdict
  /** Decides a lookup, and counts it unless the limit of unknown codes denies it. */
  countLookup(client: LimitedClient): ClientVerdict
  /** Counts a lookup of an unknown code. */
  countMiss(client: LimitedClient): void
}

/** Maximum number of cached clients, with or without open connections. */
const CLIENTS_MAX = 20_000
/** Maximum number of cached pairs of a client and an API key. */
const CLIENT_KEYS_MAX = 20_000

const planOptions = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }
const unlimited: ClientVerdict = { admitted: true, reported: undefined }

/** Creates the limits of one process. */
export function createClientLimits(deps: {
  readonly rules: RuleSet
  readonly store: LocalStore
}): ClientLimits {
  const { rules, store } = deps
  // Created at their first use, because an LRUCache allocates its full size at once.
  let clients: LRUCache<string, LimitedClient> | undefined
  let createsWithKey: LRUCache<string, PlannedLimits> | undefined

  const countRequest = ({ checks, updates }: PlannedLimits): ClientVerdict => {
    if (updates.length === 0) return unlimited
    const decisions = store.consumeNow(updates)
    const checked = pairDecisions(checks, decisions)
    const code = codeOf(checked, false)
    return { admitted: code === 'OK', reported: reportedLimitOf(checked, code) }
  }
  /** The limits of a create with an API key: a rule for the key may replace that of the client. */
  const planCreate = (client: string, apiKeyName: string): PlannedLimits => {
    const id = `${apiKeyName} ${client}`
    createsWithKey ??= new LRUCache({ max: CLIENT_KEYS_MAX })
    let planned = createsWithKey.get(id)
    if (planned === undefined) {
      planned = limitsOf(checksOf(rules, 'create', { client, api_key: apiKeyName }))
      createsWithKey.set(id, planned)
    }
    return planned
  }
  /** Most clients have never requested an unknown code, and an unused counter denies nothing. */
  const needsNoPeek = ({ updates }: PlannedLimits) =>
    updates.every(({ key, limit }) => limit.requests > 0 && !store.hasCounter(key))
  return {
    clientOf(address) {
      const key = clientKeyOf(address)
      clients ??= new LRUCache({ max: CLIENTS_MAX })
      let client = clients.get(key)
      if (client === undefined) {
        client = planClient(rules, key)
        clients.set(key, client)
      }
      return client
    },
    countCreate: ({ key, create }, apiKeyName) =>
      countRequest(apiKeyName === undefined ? create : planCreate(key, apiKeyName)),
    countReport: ({ report }) => countRequest(report),
    countLookup({ lookup, missPeek }) {
      if (needsNoPeek(missPeek)) return countRequest(lookup)
      const peeked = countRequest(missPeek)
      return peeked.admitted ? countRequest(lookup) : peeked
    },
    countMiss({ miss }) {
      countRequest(miss)
    },
  }
}

function planClient(rules: RuleSet, client: string): LimitedClient {
  const miss = checksOf(rules, 'unknown', { client })
  return {
    key: client,
    create: limitsOf(checksOf(rules, 'create', { client })),
    report: limitsOf(checksOf(rules, 'report', { client })),
    lookup: limitsOf(checksOf(rules, 'redirect', { client })),
    miss: limitsOf(miss),
    missPeek: limitsOf(miss.map(peekOf)),
  }
}

/** The checks of a request with one descriptor per entry of `values`: the route and this entry. */
function checksOf(
  rules: RuleSet,
  route: LimitedRoute,
  values: Readonly<Record<string, string>>,
): readonly Check[] {
  const descriptors = Object.entries(values).map(([key, value]) => {
    return {
      entries: [
        { key: 'route', value: route },
        { key, value },
      ],
    }
  })
  return planChecks(rules, { domain: CLIENT_DOMAIN, descriptors, hits: 1 }, planOptions).checks
}

/** The rules that no request matches, because no request has their descriptors. */
export function findUnusedRules(rules: RuleSet): readonly Rule[] {
  const top = rules.get(CLIENT_DOMAIN)
  const used = new Set<Rule>()
  for (const route of limitedRoutes) {
    const entry = { key: 'route', value: route }
    const node = top && findNode(top, entry.key, valueToMatch(top.hashedKeys, entry))
    if (node === undefined) continue
    const { exact, any } = node.children
    for (const key of route === 'create' ? ['client', 'api_key'] : ['client']) {
      const nodes = [...(exact.get(key)?.values() ?? []), any.get(key)]
      for (const rule of nodes.flatMap((one) => one?.rules ?? [])) used.add(rule)
    }
  }
  return listRules(rules).filter((rule) => !used.has(rule))
}

function limitsOf(checks: readonly Check[]): PlannedLimits {
  return { checks, updates: checks.map(({ update }) => update) }
}

/**
 * A check with 0 hits that is denied if one more hit would be. With `denyConsumes`, a fixed window
 * would admit it until the count exceeds the limit.
 */
function peekOf(check: Check): Check {
  const { update } = check
  const limit = update.limit.denyConsumes ? { ...update.limit, denyConsumes: false } : update.limit
  return { ...check, requestedHits: 0, update: { ...update, limit, hits: 0 } }
}
