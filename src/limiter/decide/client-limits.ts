// Rate limits by client within one process: decides each request synchronously in memory, with the
// rules format and the algorithms of the rate-limit service, but without a call.
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

/** The domain of the rules that apply here. */
export const CLIENT_DOMAIN = 'curtail'

/** Values of the descriptor key `route`. */
type LimitedRoute = 'create' | 'redirect' | 'unknown'

/** Limits that one request counts against, decided together. */
interface PlannedLimits {
  readonly checks: readonly Check[]
  readonly counts: readonly CounterHits[]
}

/** A client and the limits of its requests; shared by all its connections. */
export interface LimitedClient {
  readonly create: PlannedLimits
  readonly lookup: PlannedLimits
  /** A look-up of an unknown code. */
  readonly miss: PlannedLimits
  /** The same counters with cost 0: a client that exceeds them is denied every look-up. */
  readonly missPeek: PlannedLimits
  /** Look-ups counted in advance. */
  readonly prepaid: Prepaid
}

/** Hits of a client that are already counted, so that most look-ups need no decision. */
interface Prepaid {
  hits: number
  untilMs: number
  /** Reported values: what remains when all these hits are used, the limit and its reset. */
  remaining: number
  limit: number
  resetUs: number
}

/** The decision for one request. */
export interface ClientVerdict {
  readonly admitted: boolean
  /** The limit to report to the client; `undefined`: no limit applies. */
  readonly reported: ReportedLimit | undefined
}

/** Limits by client. */
export interface ClientLimits {
  /** The client of a peer address; keep it as long as the connection. */
  clientOf(address: string): LimitedClient
  /** Counts a request that creates a link. */
  countCreate(client: LimitedClient): ClientVerdict
  /** Uses one prepaid hit and returns what remains; below 0: there was none, call countLookup. */
  takePrepaid(client: LimitedClient, nowMs: number): number
  /** Counts a look-up. */
  countLookup(client: LimitedClient, nowMs: number): ClientVerdict
  /** Counts a look-up of an unknown code. */
  countMiss(client: LimitedClient): void
}

/** Clients that stay cached beyond their connections. */
const CLIENTS_MAX = 20_000
/**
 * A look-up prepays up to PREPAID_MAX further ones, at most 1/PREPAID_DIVISOR of what remains, and
 * refunds the unused ones after PREPAID_MS_MAX: one decision costs a tenth of a redirect. In any
 * period a client gets at most what its limit allows in that period plus PREPAID_MS_MAX.
 */
const PREPAID_MAX = 32
const PREPAID_DIVISOR = 100
const PREPAID_MS_MAX = 20

const noOptions = { isShadow: false, isQuota: false, denyConsumes: true }
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
  const refundPrepaid = ({ prepaid, lookup }: LimitedClient) => {
    const [counted] = lookup.counts
    if (prepaid.hits > 0 && counted !== undefined) {
      store.consumeNow([{ ...counted, cost: -prepaid.hits }])
    }
    prepaid.hits = 0
  }
  /** Prepays further look-ups if the limit is a token bucket, which refunds exactly. */
  const prepay = (client: LimitedClient, reported: ReportedLimit, nowMs: number) => {
    const { prepaid, lookup } = client
    const [counted] = lookup.counts
    const hits = Math.min(PREPAID_MAX, Math.floor(reported.remaining / PREPAID_DIVISOR))
    if (counted?.algorithm.takesBurst !== true || lookup.counts.length > 1 || hits < 1) return
    const [decision] = store.consumeNow([{ ...counted, cost: hits }])
    if (decision?.admitted !== true) return
    prepaid.hits = hits
    prepaid.untilMs = nowMs + PREPAID_MS_MAX
    prepaid.remaining = decision.remaining
    prepaid.limit = reported.limit
    prepaid.resetUs = decision.resetUs
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
    takePrepaid({ prepaid }, nowMs) {
      if (prepaid.hits === 0 || nowMs >= prepaid.untilMs) return -1
      return prepaid.remaining + --prepaid.hits
    },
    countLookup(client, nowMs) {
      refundPrepaid(client)
      const peeked = countRequest(client.missPeek)
      if (!peeked.admitted) return peeked
      const verdict = countRequest(client.lookup)
      const { admitted, reported } = verdict
      if (admitted && reported !== undefined) prepay(client, reported, nowMs)
      return verdict
    },
    countMiss(client) {
      countRequest(client.miss)
      client.prepaid.untilMs = 0 // the next look-up checks whether this miss exceeded the limit
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
    return planChecks(rules, request, noOptions).checks
  }
  const miss = checksOf('unknown')
  return {
    create: limitsOf(checksOf('create')),
    lookup: limitsOf(checksOf('redirect')),
    miss: limitsOf(miss),
    missPeek: limitsOf(miss.map(peekOf)),
    prepaid: { hits: 0, untilMs: 0, remaining: 0, limit: 0, resetUs: 0 },
  }
}

function limitsOf(checks: readonly Check[]): PlannedLimits {
  return { checks, counts: checks.map(({ count }) => count) }
}

function peekOf(check: Check): Check {
  return { ...check, hits: 0, count: { ...check.count, cost: 0 } }
}
