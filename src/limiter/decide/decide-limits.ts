// The use case of a rate-limit call: plans its checks, decides them in the store (or, if the store
// does not respond, by `on_store_error` of each rule) and builds the verdict. Independent of the
// transport and the driver.
import type { Decision } from '../../limits/algorithm.ts'
import { asSubset } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'
import type { LimitRequest } from '../../limits/descriptor.ts'
import {
  type Check,
  pairDecisions,
  type Plan,
  planChecks,
  type PlanOptions,
} from '../../limits/plan-checks.ts'
import type { JsonObject, RuleSet } from '../../limits/rule.ts'
import * as verdicts from '../../limits/verdict.ts'
import type { ClientResponseSource, MetadataSource, ClientResponse } from './client-response.ts'
import type { DenyCache } from './deny-cache.ts'
import { type GuardedStore, isUndecided, type Undecided } from './guard-store.ts'
import type { LocalShares } from './local-shares.ts'

/** The source of a decision: the store, the deny cache, or this process without the store. */
export type DecisionSource = 'store' | 'deny-cache' | 'fallback'

/** Dependencies of the use case. */
export interface DecideLimitsDeps {
  readonly rules: () => RuleSet
  readonly store: GuardedStore
  /** Used while the store is slow or unavailable. */
  readonly shares: LocalShares
  /** `undefined`: denials are not cached. */
  readonly denyCache: DenyCache | undefined
  readonly record: (check: Check, decision: Decision, source: DecisionSource) => void
  readonly onUnknownDomain: (domain: string) => void
  /** Called when a call is admitted only because all rules are in shadow mode. */
  readonly onGlobalShadow: () => void
  readonly renderResponse: (source: ClientResponseSource) => ClientResponse
  readonly renderMetadata: (source: MetadataSource) => JsonObject | undefined
  readonly nowUs: () => number
  readonly options: PlanOptions
}

/** The wait that a rule with `on_store_error: deny` reports. */
const UNAVAILABLE_RETRY_US = 1_000_000

/** Creates the use case. */
export function createDecideLimits(deps: DecideLimitsDeps): verdicts.DecideLimits {
  return async (request) => {
    const plan = planChecks(deps.rules(), request, deps.options)
    if (!plan.isDomainKnown) deps.onUnknownDomain(request.domain)
    const decisions = plan.checks.length === 0 ? [] : await decideChecks(deps, plan.checks)
    return verdictOf(deps, { request, plan, decisions })
  }
}

async function decideChecks(
  deps: DecideLimitsDeps,
  checks: readonly Check[],
): Promise<readonly Decision[]> {
  if (deps.denyCache === undefined) return decideInStore(deps, checks)
  const nowUs = deps.nowUs()
  const cached = checks.map(({ update }) => deps.denyCache?.find(update, nowUs))
  if (cached.every((decision) => decision === undefined)) return decideInStore(deps, checks)
  const uncached = checks.filter((_, at) => cached[at] === undefined)
  const forStore = isDeniedBy(cached, checks) ? uncached.map(asDenied) : uncached
  const stored = forStore.length === 0 ? [] : await decideInStore(deps, forStore)
  let next = 0
  return checks.map((check, at) => {
    const decision = cached[at] ?? stored[next++]
    if (decision === undefined) throw new Error('Cannot decide: too few decisions from the store')
    if (cached[at] !== undefined) deps.record(check, decision, 'deny-cache')
    return decision
  })
}

/** Whether no other check of the call uses its counter: the hits of one could deny the other. */
function isOnlyCheckOfCounter(checks: readonly Check[], { update }: Check): boolean {
  return checks.length === 1 || checks.filter((one) => one.update.key === update.key).length === 1
}

/** Whether the known decisions alone deny a call, whatever its other checks decide. */
function isDeniedBy(known: readonly (Decision | undefined)[], checks: readonly Check[]): boolean {
  const decisions = known.map((decision) => decision ?? { admitted: true })
  return isDenied(updatesOf(checks), decisions)
}

function updatesOf(checks: readonly Check[]) {
  return checks.map(({ update }) => update)
}

/** The check as it counts in a denied call: with 0 hits, unless the limit counts denied hits. */
function asDenied(check: Check): Check {
  const { update } = check
  if (update.limit.denyConsumes || update.hits <= 0) return check
  return { ...check, update: { ...update, hits: 0 } }
}

async function decideInStore(
  deps: DecideLimitsDeps,
  checks: readonly Check[],
): Promise<readonly Decision[]> {
  const updates = updatesOf(checks)
  const decisions = await deps.store.decide(updates)
  if (deps.denyCache !== undefined) invalidateRefunded(deps.denyCache, checks)
  if (isUndecided(decisions)) return decideWithoutStore(deps, checks, decisions)
  deps.shares.record(updates, decisions)
  const nowUs = deps.denyCache === undefined ? 0 : deps.nowUs()
  return checks.map((check, at) => {
    const decision = decisions[at]
    if (decision === undefined) throw new Error('Cannot decide: too few decisions from the store')
    if (!decision.admitted && isOnlyCheckOfCounter(checks, check)) {
      deps.denyCache?.store(check.update, decision, nowUs)
    }
    deps.record(check, decision, 'store')
    return decision
  })
}

/**
 * Removes the cached denials of refunded counters. Runs after the store call, because until then a
 * concurrent call may cache a denial; and even if the call is undecided, because the store may
 * still count the refund.
 */
function invalidateRefunded(denyCache: DenyCache, checks: readonly Check[]): void {
  for (const { update } of checks) if (update.hits < 0) denyCache.invalidate(update.key)
}

/** Decides each check by its rule: allows, denies, or counts against this process's share. */
function decideWithoutStore(
  deps: DecideLimitsDeps,
  checks: readonly Check[],
  { delayedResult }: Undecided,
): readonly Decision[] {
  const fixed = checks.map(fixedDecision)
  const isLocal = (_: unknown, at: number) => fixed[at] === undefined
  const localChecks = checks.filter(isLocal)
  const toCount = isDeniedBy(fixed, checks) ? localChecks.map(asDenied) : localChecks
  // Quotas deny a call only if all of them do. Those with `on_store_error: deny` do, so the rest
  // decide. If any of the rest has `allow`, the quotas do not deny the call.
  const undenied = checks.filter((_, at) => fixed[at]?.admitted !== false)
  const local = deps.shares.decide(
    asSubset(updatesOf(toCount), updatesOf(undenied)),
    delayedResult?.then((decisions) => decisions?.filter(isLocal)),
  )
  let next = 0
  return checks.map((check, at) => {
    const decision = fixed[at] ?? local[next++]
    if (decision === undefined) throw new Error('Cannot decide: a local decision is missing')
    deps.record(check, decision, 'fallback')
    return decision
  })
}

/** The decision of a rule with `on_store_error: allow` or `deny`; `undefined`: `local`. */
function fixedDecision({ rule, update: { hits } }: Check): Decision | undefined {
  if (rule.onStoreError === 'local') return undefined
  const isAllowed = rule.onStoreError === 'allow'
  return {
    admitted: isAllowed || hits < 0,
    remaining: isAllowed ? verdicts.capacityOf(rule) : 0,
    over: isAllowed ? 0 : Math.max(0, hits),
    resetUs: isAllowed ? 0 : UNAVAILABLE_RETRY_US,
    retryAfterUs: isAllowed ? 0 : UNAVAILABLE_RETRY_US,
    next: undefined,
    expiresInUs: 0,
  }
}

function verdictOf(
  deps: DecideLimitsDeps,
  input: { request: LimitRequest; plan: Plan; decisions: readonly Decision[] },
): verdicts.Verdict {
  const { plan, decisions } = input
  const checked = pairDecisions(plan.checks, decisions)
  const statuses = verdicts.statusesOf(plan.uncheckedReasons, checked)
  const decidedCode = verdicts.codeOf(checked, deps.options.areAllQuotas)
  if (decidedCode === 'OVER_LIMIT' && deps.options.areAllShadow) deps.onGlobalShadow()
  const code = deps.options.areAllShadow ? 'OK' : decidedCode
  const reported = verdicts.reportedLimitOf(checked, code, deps.options.areAllQuotas)
  const { headers, body } = deps.renderResponse({ code, reported, checked })
  // With the rule's name, the proxy can log a denial or render it itself.
  const ruleName = code === 'OK' ? undefined : reported?.rule
  const ruleMetadata = verdicts.metadataOf(checked, statuses)
  return {
    code,
    statuses,
    responseHeaders: headers,
    body,
    dynamicMetadata: deps.renderMetadata({ request: input.request, ruleMetadata, ruleName }),
  }
}
