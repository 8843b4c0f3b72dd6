// Builds the verdict on a call from the decisions of its limits. Independent of protocol and store.
// The reference is envoyproxy/ratelimit.
import { StacklessError } from '../protobuf/stackless-error.ts'
import type { Decision } from './algorithm.ts'
import type { LimitRequest, Unit } from './descriptor.ts'
import type { Json, JsonObject, Rule } from './rule.ts'

/** Whether a call, or one of its descriptors, is admitted. */
export type Code = 'OK' | 'OVER_LIMIT'

/** The status of one descriptor in the response. */
export interface DescriptorStatus {
  readonly code: Code
  /** The strictest limit of the descriptor; `undefined`: no limit applies, or it is unlimited. */
  readonly currentLimit:
    | {
        readonly requestsPerUnit: number
        /** `undefined`: the window is not a unit of Envoy's API. */
        readonly unit: Unit | undefined
        readonly name: string | undefined
      }
    | undefined
  /** From 0 to 2^32 - 1. */
  readonly limitRemaining: number
  /** Whole seconds, rounded up; `undefined` without a limit. */
  readonly resetSeconds: number | undefined
}

/** The response to a call. */
export interface Verdict {
  readonly code: Code
  /** In the order of the descriptors. */
  readonly statuses: readonly DescriptorStatus[]
  /** Headers for the client of the proxy, whether the call is admitted or denied. */
  readonly responseHeaders: readonly (readonly [name: string, value: string])[]
  /** Body of the proxy's own response if the call is denied. */
  readonly body: string | undefined
  readonly dynamicMetadata: JsonObject | undefined
}

/** Decides a call. Throws LimitRequestError; any other error is a defect. */
export type DecideLimits = (request: LimitRequest) => Promise<Verdict>

/** An invalid call; the caller gets the message. */
export class LimitRequestError extends StacklessError {
  override readonly name = 'LimitRequestError'
}

/** One limit that a call hits, and its decision. */
export interface CheckedLimit {
  readonly descriptorIndex: number
  readonly rule: Rule
  /** Hits of the descriptor, or else of the request; 0 only reads, a negative number refunds. */
  readonly requestedHits: number
  readonly decision: Decision
}

/**
 * The reason why a descriptor counts against no limit: `unlimited`: its rule has no limit;
 * `no-rule`: no rule applies, or all are replaced.
 */
export type UncheckedReason = 'unlimited' | 'no-rule'

const UINT32_MAX = 2 ** 32 - 1

/** State of a limit. */
export interface LimitState {
  /** Maximum number of requests; for a token bucket, its burst. */
  readonly limit: number
  readonly remaining: number
  /** Time until the whole limit is available. */
  readonly resetUs: number
  /** Time of the decision by the store's clock; `undefined`: now. */
  readonly decidedAtUs?: number | undefined
}

/** The limit that is reported to the client. */
export interface ReportedLimit extends LimitState {
  /** `name` of the rule, or its path. */
  readonly rule: string
  /** At least 1 if the call is denied; else 0. */
  readonly retryAfterSeconds: number
}

/**
 * Whether a call is admitted: if no limit denies it and not all quotas are exhausted.
 * `areAllQuotas`: every limit is a quota.
 */
export function codeOf(checked: readonly CheckedLimit[], areAllQuotas: boolean): Code {
  let quotas = 0
  let quotasDenied = 0
  for (const { rule, decision } of checked) {
    if (rule.isShadow) continue
    const isQuota = areAllQuotas || rule.isQuota
    if (!isQuota && !decision.admitted) return 'OVER_LIMIT'
    if (!isQuota) continue
    quotas++
    if (!decision.admitted) quotasDenied++
  }
  return quotas > 0 && quotas === quotasDenied ? 'OVER_LIMIT' : 'OK'
}

/**
 * The limit to report to the client; never one in shadow mode. If the call is admitted: among the
 * limits with more than 0 requested hits, one that denies (such as a quota), else the one with the
 * least remaining. If it is denied: the limit with the longest wait among those that deny it alone,
 * else the quota with the shortest wait.
 */
export function reportedLimitOf(
  checked: readonly CheckedLimit[],
  code: Code,
  areAllQuotas = false,
): ReportedLimit | undefined {
  const precedes = code === 'OK' ? isStricter : outranks(areAllQuotas)
  let reported: CheckedLimit | undefined
  for (const one of checked) {
    if (one.rule.isShadow) continue
    if (code === 'OVER_LIMIT' ? one.decision.admitted : one.requestedHits <= 0) continue
    if (reported === undefined || precedes(one, reported)) reported = one
  }
  if (reported?.rule.limit === undefined) return undefined
  const { rule, decision } = reported
  return {
    rule: rule.name ?? rule.path,
    limit: capacityOf(rule),
    remaining: code === 'OVER_LIMIT' ? 0 : decision.remaining,
    resetUs: decision.resetUs,
    decidedAtUs: decision.decidedAtUs,
    retryAfterSeconds: code === 'OVER_LIMIT' ? waitSecondsOf(rule, decision) : 0,
  }
}

/**
 * The limit that the headers of envoyproxy/ratelimit report, even if it is in shadow mode or has no
 * requested hits: the last one that denies and is not a quota, else the first one with the least
 * remaining.
 */
export function referenceLimitStateOf(
  checked: readonly CheckedLimit[],
  areAllQuotas: boolean,
): LimitState | undefined {
  let reported: CheckedLimit | undefined
  let least = UINT32_MAX
  for (const one of strictestOf(checked)) {
    if (one === undefined) continue
    const isQuota = areAllQuotas || one.rule.isQuota
    const remaining = remainingOf(one)
    if ((isQuota || codeOfLimit(one) === 'OK') && remaining >= least) continue
    reported = one
    least = remaining
  }
  if (reported === undefined) return undefined
  return { limit: capacityOf(reported.rule), remaining: least, resetUs: reported.decision.resetUs }
}

/**
 * Whether, for a denied call, `one` is reported instead of `other`. Limits that are not quotas have
 * precedence over quotas; then a longer wait has precedence or, between quotas, a shorter one.
 */
function outranks(areAllQuotas: boolean): (one: CheckedLimit, other: CheckedLimit) => boolean {
  const isQuota = ({ rule }: CheckedLimit) => areAllQuotas || rule.isQuota
  return (one, other) => {
    if (isQuota(one) !== isQuota(other)) return isQuota(other)
    return isQuota(one) ? isStricter(other, one) : isStricter(one, other)
  }
}

/** The time at which the whole limit is available, in Unix seconds, rounded up. */
export function resetAtOf(
  { resetUs, decidedAtUs }: Pick<ReportedLimit, 'resetUs' | 'decidedAtUs'>,
  nowMs: number,
): number {
  return Math.ceil(((decidedAtUs ?? nowMs * 1000) + resetUs) / 1_000_000)
}

/** The number that is reported as the limit of a rule: its `burst`, or else its `requests`. */
export function capacityOf({ algorithm, limit }: Rule): number {
  if (limit === undefined) return UINT32_MAX
  return algorithm.takesBurst ? limit.burst : limit.requests
}

/** Whether `one` is stricter than `other`: it denies longer, or has less remaining. */
function isStricter(one: CheckedLimit, other: CheckedLimit): boolean {
  const [a, b] = [one.decision, other.decision]
  if (a.admitted !== b.admitted) return !a.admitted
  return a.admitted ? a.remaining < b.remaining : a.retryAfterUs > b.retryAfterUs
}

function secondsOf(us: number): number {
  return Math.ceil(us / 1_000_000)
}

/** Whole seconds after which these hits are admitted; one window if they never are. */
function waitSecondsOf({ limit }: Rule, { retryAfterUs }: Decision): number {
  const us = Number.isFinite(retryAfterUs) ? retryAfterUs : (limit?.windowUs ?? 0)
  return Math.max(1, secondsOf(us))
}

/** The statuses of the descriptors, in their order. */
export function statusesOf(
  uncheckedReasons: readonly (UncheckedReason | undefined)[],
  checked: readonly CheckedLimit[],
): DescriptorStatus[] {
  const strictest = strictestOf(checked)
  return uncheckedReasons.map((reason, at) => {
    const one = strictest[at]
    return one === undefined ? uncheckedStatus(reason) : statusOf(one)
  })
}

/** The strictest limit of each descriptor, by its index; `undefined` for one without limits. */
function strictestOf(checked: readonly CheckedLimit[]): (CheckedLimit | undefined)[] {
  const strictest: (CheckedLimit | undefined)[] = []
  for (const one of checked) {
    const { descriptorIndex: index } = one
    while (strictest.length < index) strictest.push(undefined)
    const other = strictest[index]
    if (other === undefined || isStricter(one, other)) strictest[index] = one
  }
  return strictest
}

function uncheckedStatus(reason: UncheckedReason | undefined): DescriptorStatus {
  const limitRemaining = reason === 'unlimited' ? UINT32_MAX : 0
  return { code: 'OK', currentLimit: undefined, limitRemaining, resetSeconds: undefined }
}

function codeOfLimit({ rule, decision }: CheckedLimit): Code {
  return decision.admitted || rule.isShadow ? 'OK' : 'OVER_LIMIT'
}

/** The remaining hits, bounded by the uint32 of the response field. */
function remainingOf({ decision }: CheckedLimit): number {
  return decision.admitted ? Math.min(UINT32_MAX, decision.remaining) : 0
}

function statusOf(one: CheckedLimit): DescriptorStatus {
  const { rule, decision } = one
  return {
    code: codeOfLimit(one),
    currentLimit: {
      requestsPerUnit: rule.limit?.requests ?? 0,
      unit: rule.unit,
      name: rule.name,
    },
    limitRemaining: remainingOf(one),
    resetSeconds: secondsOf(decision.resetUs),
  }
}

/** The merged metadata of rules with an admitted descriptor; of two values the first wins. */
export function metadataOf(
  checked: readonly CheckedLimit[],
  statuses: readonly DescriptorStatus[],
): JsonObject | undefined {
  let merged: JsonObject | undefined
  for (const { descriptorIndex, rule } of checked) {
    if (rule.metadata === undefined || statuses[descriptorIndex]?.code !== 'OK') continue
    merged = merged === undefined ? rule.metadata : mergedOf(merged, rule.metadata)
  }
  return merged
}

function mergedOf(first: JsonObject, second: JsonObject): JsonObject {
  const merged = new Map(Object.entries(first))
  for (const [key, value] of Object.entries(second)) {
    const existing = merged.get(key)
    if (existing === undefined) merged.set(key, value)
    else if (isObject(existing) && isObject(value)) merged.set(key, mergedOf(existing, value))
  }
  return Object.fromEntries(merged)
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
