// Rate limits by client within one process: decides each request synchronously in memory, with the
// rules and algorithms of the rate-limit service, but without calling it.
import { LRUCache } from 'lru-cache'
import type { Decision } from '../../limits/algorithm.ts'
import { clientOf } from '../../limits/client-address.ts'
import type { CounterHits } from '../../limits/counter-store.ts'
import { type Check, planChecks } from '../../limits/plan-checks.ts'
import type { RuleSet } from '../../limits/rule.ts'
import {
  codeOf,
  type CheckedLimit,
  type ReportedLimit,
  reportedLimitOf,
} from '../../limits/verdict.ts'

/** The domain of the rules for clients. */
export const CLIENT_DOMAIN = 'curtail'

/** Values of the descriptor key `route`. */
type LimitedRoute = 'create' | 'redirect' | 'unknown'

/** The limits that one request counts against; they are decided together. */
interface PlannedLimits {
  readonly checks: readonly Check[]
  readonly counts: readonly CounterHits[]
}

/** A client with the limits of its requests; shared by all its connections. */
export interface LimitedClient {
  readonly create: PlannedLimits
  /** The limits for any lookup of a code: route `redirect`. */
  readonly lookup: PlannedLimits
  /** The limits for a lookup of an unknown code: route `unknown`. */
  readonly miss: PlannedLimits
  /** The same counters with cost 0: a client that exceeds them is denied every lookup. */
  readonly missPeek: PlannedLimits
}

/** The decision for one request. */
export interface ClientVerdict {
  readonly admitted: boolean
  /** The limit to report to the client; `undefined`: no limit applies. */
  readonly reported: ReportedLimit | undefined
}

/** Limits by client. */
export interface ClientLimits {
  /** The client of a peer address; callers keep it as long as the connection. */
  clientOf(address: string): LimitedClient
  /** Counts a request that creates a link. */
  countCreate(client: LimitedClient): ClientVerdict
  /** Counts a lookup. */
  countLookup(client: LimitedClient): ClientVerdict
  /** Counts a lookup of an unknown code. */
  countMiss(client: LimitedClient): void
}

/** Maximum number of clients that stay cached after their connections are closed. */
const CLIENTS_MAX = 20_000

const planOptions = { isShadow: false, isQuota: false, denyConsumes: true }
const unlimited: ClientVerdict = { admitted: true, reported: undefined }

/** Creates the limits of one process. */
export function createClientLimits(deps: {
  readonly rules: RuleSet
  readonly store: { consumeNow(counts: readonly CounterHits[]): readonly Decision[] }
}): ClientLimits {
  const { rules, store } = deps
  const clients = new LRUCache<string, LimitedClient>({ max: CLIENTS_MAX })

  const countRequest = ({ checks, counts }: PlannedLimits): ClientVerdict => {
    if (counts.length === 0) return unlimited
    const decisions = store.consumeNow(counts)
    const checked: CheckedLimit[] = []
    for (let at = 0; at < checks.length; at++) {
      const [check, decision] = [checks[at], decisions[at]]
      if (check === undefined || decision === undefined) continue
      checked.push({ at, rule: check.rule, hits: check.hits, decision })
    }
    const code = codeOf(checked, false)
    return { admitted: code === 'OK', reported: reportedLimitOf(checked, code) }
  }
  return {
    clientOf(address) {
      const name = clientOf(address)
      let client = clients.get(name)
      if (client === undefined) {
        client = planClient(rules, name)
        clients.set(name, client)
      }
      return client
    },
    countCreate: ({ create }) => countRequest(create),
    countLookup({ lookup, missPeek }) {
      const peeked = countRequest(missPeek)
      return peeked.admitted ? countRequest(lookup) : peeked
    },
    countMiss({ miss }) {
      countRequest(miss)
    },
  }
}

function planClient(rules: RuleSet, client: string): LimitedClient {
  const checksOf = (route: LimitedRoute): readonly Check[] => {
    const entries = [
      { key: 'route', value: route },
      { key: 'client', value: client },
    ]
    const request = { domain: CLIENT_DOMAIN, descriptors: [{ entries }], hits: 1 }
    return planChecks(rules, request, planOptions).checks
  }
  const miss = checksOf('unknown')
  return {
    create: limitsOf(checksOf('create')),
    lookup: limitsOf(checksOf('redirect')),
    miss: limitsOf(miss),
    missPeek: limitsOf(miss.map(peekOf)),
  }
}

function limitsOf(checks: readonly Check[]): PlannedLimits {
  return { checks, counts: checks.map(({ count }) => count) }
}

function peekOf(check: Check): Check {
  return { ...check, hits: 0, count: { ...check.count, cost: 0 } }
}
