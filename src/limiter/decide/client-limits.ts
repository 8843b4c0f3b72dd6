// Limits by client within one process: what a request of a client is charged to, decided at once in
// memory. The same rules file and algorithms as the rate-limit service, without a call.
import { LRUCache } from 'lru-cache'
import type { Decision } from '../../limits/algorithm.ts'
import { clientOf } from '../../limits/client-address.ts'
import type { CounterCharge } from '../../limits/counter-store.ts'
import { type Check, planCharges } from '../../limits/plan-charges.ts'
import type { RuleSet } from '../../limits/rule.ts'
import { codeOf, type Judged, type Told, toldOf } from '../../limits/verdict.ts'

/** The domain of the rules that hold here. */
export const CLIENT_DOMAIN = 'curtail'

/** What a request does, as rules name it in the key `route`. */
type LimitedRoute = 'create' | 'redirect' | 'unknown'

/** Charges that are made together. */
interface ChargeSheet {
  readonly checks: readonly Check[]
  readonly charges: readonly CounterCharge[]
}

/** A client, with what its requests are charged to; the same for all its connections. */
export interface LimitedClient {
  readonly create: ChargeSheet
  readonly lookup: ChargeSheet
  /** A look-up of an unknown code. */
  readonly unknown: ChargeSheet
  /** The same counters, only looked at: who is over them is refused every look-up. */
  readonly unknownLook: ChargeSheet
  /** Look-ups that were charged in advance. */
  readonly advance: Advance
}

/** Hits that a client has been charged already, so that most look-ups need no decision. */
interface Advance {
  left: number
  untilMs: number
  /** What remains once none of them is left, and what else is told. */
  remaining: number
  limit: number
  resetUs: number
}

/** What a request may be told. */
export interface ClientVerdict {
  readonly admitted: boolean
  /** `undefined`: no limit speaks. */
  readonly told: Told | undefined
}

/** Limits by client. */
export interface ClientLimits {
  /** The client of a peer's address; to be kept as long as its connection. */
  clientOf(address: string): LimitedClient
  /** Charges a request that creates. */
  chargeCreate(client: LimitedClient): ClientVerdict
  /** What is left after a look-up that was paid in advance; below 0: none was, so charge it. */
  takePaid(client: LimitedClient, nowMs: number): number
  /** Charges a look-up. */
  chargeLookup(client: LimitedClient, nowMs: number): ClientVerdict
  /** Charges a look-up that found nothing. */
  chargeUnknown(client: LimitedClient): void
}

/** Clients that are remembered beyond their connections. */
const CLIENTS_MAX = 20_000
/**
 * A client that has much left is charged so many look-ups in advance, a hundredth of what it has at
 * most, and given back after so long what it did not use: a decision for each costs a tenth of a
 * redirect. In any time it is let through no more than its limit allows in ADVANCE_MS_MAX longer.
 */
const ADVANCE_MAX = 32
const ADVANCE_PART = 100
const ADVANCE_MS_MAX = 20

const noOptions = { isShadow: false, isQuota: false, denyConsumes: true }
const unlimited: ClientVerdict = { admitted: true, told: undefined }

/** Makes the limits of one process. */
export function createClientLimits(deps: {
  readonly rules: RuleSet
  readonly store: { chargeNow(charges: readonly CounterCharge[]): readonly Decision[] }
}): ClientLimits {
  const { rules, store } = deps
  const clients = new LRUCache<string, LimitedClient>({ max: CLIENTS_MAX })

  const charge = ({ checks, charges }: ChargeSheet): ClientVerdict => {
    if (charges.length === 0) return unlimited
    const decisions = store.chargeNow(charges)
    const judged: Judged[] = []
    for (let at = 0; at < checks.length; at++) {
      const [check, decision] = [checks[at], decisions[at]]
      if (check === undefined || decision === undefined) continue
      judged.push({ at, rule: check.rule, hits: check.hits, decision })
    }
    const code = codeOf(judged, false)
    return { admitted: code === 'OK', told: toldOf(judged, code) }
  }
  const giveBack = ({ advance, lookup }: LimitedClient) => {
    const [taken] = lookup.charges
    if (advance.left > 0 && taken !== undefined) {
      store.chargeNow([{ ...taken, cost: -advance.left }])
    }
    advance.left = 0
  }
  /** Charges some further look-ups, if the limit is one that gives back exactly. */
  const takeAdvance = (client: LimitedClient, told: Told, nowMs: number) => {
    const { advance, lookup } = client
    const [taken] = lookup.charges
    const hits = Math.min(ADVANCE_MAX, Math.floor(told.remaining / ADVANCE_PART))
    if (taken?.algorithm.takesBurst !== true || lookup.charges.length > 1 || hits < 1) return
    const [decision] = store.chargeNow([{ ...taken, cost: hits }])
    if (decision?.admitted !== true) return
    advance.left = hits
    advance.untilMs = nowMs + ADVANCE_MS_MAX
    advance.remaining = decision.remaining
    advance.limit = told.limit
    advance.resetUs = decision.resetUs
  }
  return {
    clientOf(address) {
      const name = clientOf(address)
      let client = clients.get(name)
      if (client === undefined) {
        client = openClient(rules, name)
        clients.set(name, client)
      }
      return client
    },
    chargeCreate: ({ create }) => charge(create),
    takePaid({ advance }, nowMs) {
      if (advance.left === 0 || nowMs >= advance.untilMs) return -1
      return advance.remaining + --advance.left
    },
    chargeLookup(client, nowMs) {
      giveBack(client)
      const looked = charge(client.unknownLook)
      if (!looked.admitted) return looked
      const verdict = charge(client.lookup)
      if (verdict.admitted && verdict.told !== undefined) takeAdvance(client, verdict.told, nowMs)
      return verdict
    },
    chargeUnknown(client) {
      charge(client.unknown)
      client.advance.untilMs = 0 // the next look-up looks whether that was one too many
    },
  }
}

function openClient(rules: RuleSet, client: string): LimitedClient {
  const checksOf = (route: LimitedRoute): readonly Check[] => {
    const entries = [
      { key: 'route', value: route },
      { key: 'client', value: client },
    ]
    const request = { domain: CLIENT_DOMAIN, descriptors: [{ entries }], hits: 1 }
    return planCharges(rules, request, noOptions).checks
  }
  const unknown = checksOf('unknown')
  return {
    create: sheetOf(checksOf('create')),
    lookup: sheetOf(checksOf('redirect')),
    unknown: sheetOf(unknown),
    unknownLook: sheetOf(unknown.map(lookOf)),
    advance: { left: 0, untilMs: 0, remaining: 0, limit: 0, resetUs: 0 },
  }
}

function sheetOf(checks: readonly Check[]): ChargeSheet {
  return { checks, charges: checks.map(({ charge }) => charge) }
}

function lookOf(check: Check): Check {
  return { ...check, hits: 0, charge: { ...check.charge, cost: 0 } }
}
