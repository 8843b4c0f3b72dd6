// The use case of a rate-limit call: plan its charges, charge them in the store or, where that does
// not answer, as each rule says, and make the verdict. Knows no wire and no driver.
import type { Decision } from '../../limits/algorithm.ts'
import { type CounterCharge, partOf } from '../../limits/counter-store.ts'
import type { LimitRequest } from '../../limits/descriptor.ts'
import { type Check, type Plan, planCharges, type PlanOptions } from '../../limits/plan-charges.ts'
import type { JsonObject, RuleSet } from '../../limits/rule.ts'
import * as verdicts from '../../limits/verdict.ts'
import type { ClientWords, MetadataSource, Spoken } from './response-headers.ts'
import type { DenyCache } from './deny-cache.ts'
import { type GuardedStore, isUnanswered, type Unanswered } from './guard-store.ts'
import { createLocalShares, type LocalCounters, type LocalShares } from './local-shares.ts'

/** Who decided a check: the store, or this process because it knew or because the store is away. */
export type DecidedBy = 'store' | 'deny-cache' | 'fallback'

/** What deciding needs. */
export interface DecideLimitsDeps {
  readonly rules: () => RuleSet
  readonly store: GuardedStore
  /** Counts while the store is slow or away. */
  readonly local: LocalCounters
  readonly denied: DenyCache | undefined
  readonly record: (check: Check, decision: Decision, by: DecidedBy) => void
  readonly onUnknownDomain: (domain: string) => void
  readonly onGlobalShadow: () => void
  readonly renderWords: (spoken: Spoken) => ClientWords
  readonly renderMetadata: (source: MetadataSource) => JsonObject | undefined
  readonly nowUs: () => number
  readonly options: PlanOptions & {
    /** How many processes share a limit while the store is slow or away. */
    readonly replicas: number
  }
}

const SILENCE_RETRY_US = 1_000_000

/** What the parts of the use case share. */
interface Deciding extends DecideLimitsDeps {
  readonly shares: LocalShares
}

/** Makes the use case. */
export function createDecideLimits(given: DecideLimitsDeps): verdicts.DecideLimits {
  const { local, nowUs, options, store } = given
  const { replicas } = options
  const shares = createLocalShares({ replicas, local, isSilent: () => store.isSilent(), nowUs })
  const deps: Deciding = { ...given, shares }
  return async (request) => {
    const plan = planCharges(deps.rules(), request, deps.options)
    if (!plan.isDomainKnown) deps.onUnknownDomain(request.domain)
    const decisions = plan.checks.length === 0 ? [] : await decideChecks(deps, plan.checks)
    return verdictOf(deps, { request, plan, decisions })
  }
}

async function decideChecks(
  deps: Deciding,
  checks: readonly Check[],
): Promise<readonly Decision[]> {
  if (deps.denied === undefined) return decideInStore(deps, checks)
  const nowUs = deps.nowUs()
  const known = checks.map(({ charge }) => deps.denied?.find(charge, nowUs))
  if (known.every((decision) => decision === undefined)) return decideInStore(deps, checks)
  // What is denied here denies the call, so of the others only what counts all the same is charged.
  const isKnown = (veto: CounterCharge['veto']) =>
    checks.flatMap(({ charge }, at) => (charge.veto === veto ? [known[at] !== undefined] : []))
  const together = isKnown('together')
  const isDenied =
    isKnown('alone').includes(true) || (together.length > 0 && !together.includes(false))
  const asked = checks.filter((_, at) => known[at] === undefined)
  const askedNow = isDenied ? asked.map(keptOf) : asked
  const answers = askedNow.length === 0 ? [] : await decideInStore(deps, askedNow)
  let taken = 0
  return checks.map((check, at) => {
    const decision = known[at] ?? answers[taken++]
    if (decision === undefined) throw new Error('Cannot decide: the store gave too few decisions')
    if (known[at] !== undefined) deps.record(check, decision, 'deny-cache')
    return decision
  })
}

/** Whether a call charges a counter only once: else it may be denied because of itself. */
function isAlone(checks: readonly Check[], { charge }: Check): boolean {
  return checks.length === 1 || checks.filter((one) => one.charge.key === charge.key).length === 1
}

/** A check of a call that is denied: hits that such a call takes back are only looked at. */
function keptOf(check: Check): Check {
  const { charge } = check
  if (charge.limit.denyConsumes || charge.cost <= 0) return check
  return { ...check, charge: { ...charge, cost: 0 } }
}

async function decideInStore(
  deps: Deciding,
  checks: readonly Check[],
): Promise<readonly Decision[]> {
  const charges = checks.map(({ charge }) => charge)
  const decisions = await deps.store.charge(charges)
  if (deps.denied !== undefined) invalidateRefunded(deps.denied, checks)
  if (isUnanswered(decisions)) return decideWithoutStore(deps, checks, decisions)
  deps.shares.note(charges, decisions)
  const nowUs = deps.denied === undefined ? 0 : deps.nowUs()
  return checks.map((check, at) => {
    const decision = decisions[at]
    if (decision === undefined) throw new Error('Cannot decide: the store gave too few decisions')
    if (!decision.admitted && isAlone(checks, check)) {
      deps.denied?.note(check.charge, decision, nowUs)
    }
    deps.record(check, decision, 'store')
    return decision
  })
}

/** After the store's answer: a denial that was decided before the refund has been noted by then. */
function invalidateRefunded(denied: DenyCache, checks: readonly Check[]): void {
  for (const { charge } of checks) if (charge.cost < 0) denied.invalidate(charge.key)
}

/** Each by its rule: let pass, denied, or counted here against this process's share. */
function decideWithoutStore(
  deps: Deciding,
  checks: readonly Check[],
  { later }: Unanswered,
): readonly Decision[] {
  const isLocal = (_: unknown, at: number) => checks[at]?.rule.onStoreError === 'local'
  const charges = checks.map(({ charge }) => charge)
  const counted = deps.shares.charge(
    partOf(charges.filter(isLocal), charges),
    later?.then((decisions) => decisions?.filter(isLocal)),
  )
  let taken = 0
  return checks.map((check) => {
    const mode = check.rule.onStoreError
    const decision = mode === 'local' ? counted[taken++] : uncounted(mode === 'allow', check.charge)
    if (decision === undefined) throw new Error('Cannot decide: a local decision is missing')
    deps.record(check, decision, 'fallback')
    return decision
  })
}

function uncounted(admitted: boolean, { cost, limit }: CounterCharge): Decision {
  return {
    admitted: admitted || cost < 0,
    remaining: admitted ? Math.max(limit.burst, limit.requests) : 0,
    over: admitted ? 0 : Math.max(0, cost),
    resetUs: admitted ? 0 : SILENCE_RETRY_US,
    retryAfterUs: admitted ? 0 : SILENCE_RETRY_US,
    next: undefined,
    expiresInUs: 0,
  }
}

function verdictOf(
  deps: DecideLimitsDeps,
  given: { request: LimitRequest; plan: Plan; decisions: readonly Decision[] },
): verdicts.Verdict {
  const { plan, decisions } = given
  const judged: verdicts.Judged[] = []
  for (const [at, { at: descriptorAt, rule, hits }] of plan.checks.entries()) {
    const decision = decisions[at]
    if (decision !== undefined) judged.push({ at: descriptorAt, rule, hits, decision })
  }
  const statuses = verdicts.statusesOf(plan.unjudged, judged)
  const enforced = verdicts.codeOf(judged, deps.options.isQuota)
  if (enforced === 'OVER_LIMIT' && deps.options.isShadow) deps.onGlobalShadow()
  const code = deps.options.isShadow ? 'OK' : enforced
  const told = verdicts.toldOf(judged, code, deps.options.isQuota)
  const words = deps.renderWords({ code, told, judged })
  // By the rule's name the proxy can log a denial, and render it itself.
  const rule = words.body === undefined ? undefined : told?.rule
  const rules = verdicts.metadataOf(judged, statuses)
  return {
    code,
    statuses,
    responseHeaders: words.headers,
    body: words.body,
    dynamicMetadata: deps.renderMetadata({ request: given.request, rules, rule }),
  }
}
