// What a call is answered, made of the decisions of its limits. Knows no wire and no store.
import type { Decision } from './algorithm.ts'
import type { LimitRequest, Unit } from './descriptor.ts'
import type { Json, JsonObject, Rule } from './rule.ts'

/** Whether a call, or one descriptor of it, is let pass. */
export type Code = 'OK' | 'OVER_LIMIT'

/** The answer for one descriptor. */
export interface DescriptorStatus {
  readonly code: Code
  /** The limit that decided; `undefined` where there is none, or it is unlimited. */
  readonly currentLimit:
    | {
        readonly requestsPerUnit: number
        /** `undefined`: the window is no unit of Envoy's. */
        readonly unit: Unit | undefined
        readonly name: string | undefined
      }
    | undefined
  /** From 0 to 2^32 - 1. */
  readonly limitRemaining: number
  /** Whole seconds, rounded up; `undefined` where there is no limit. */
  readonly resetSeconds: number | undefined
}

/** The answer to a call. */
export interface Verdict {
  readonly code: Code
  /** In the order of the descriptors. */
  readonly statuses: readonly DescriptorStatus[]
  /** For the client of the proxy, on what is let pass and on what is not. */
  readonly responseHeaders: readonly (readonly [name: string, value: string])[]
  /** Body of the proxy's own answer, where the call is not let pass. */
  readonly body: string | undefined
  readonly dynamicMetadata: JsonObject | undefined
}

/** Decides a call. Throws LimitRequestError, or whatever is a defect. */
export type DecideLimits = (request: LimitRequest) => Promise<Verdict>

/**
 * A call that cannot be decided; its message is for the caller. It records no stack, which would
 * take most of the time of a call with a fault.
 */
export class LimitRequestError extends Error {
  override readonly name = 'LimitRequestError'

  constructor(message: string) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** One limit that a call hits, and what was decided of it. */
export interface Judged {
  /** Which descriptor of the call, from 0. */
  readonly at: number
  readonly rule: Rule
  readonly hits: number
  readonly decision: Decision
}

/** What is remarkable of a descriptor that is charged to no limit. */
export type Unjudged = 'unlimited' | 'no-limit'

const UINT32_MAX = 2 ** 32 - 1

/** How a limit stands. */
export interface Standing {
  /** Requests at most, for a bucket at once. */
  readonly limit: number
  readonly remaining: number
  /** Until the whole limit is free again. */
  readonly resetUs: number
  /** When that was decided by the store's clock; without it, now. */
  readonly decidedAtUs?: number | undefined
}

/** The limit of which a client is told. */
export interface Told extends Standing {
  /** `name` of the rule, or where it stands. */
  readonly rule: string
  /** At least 1 where the call is not let pass; else 0. */
  readonly retryAfterSeconds: number
}

/**
 * Whether a call is let pass: not if one limit denies it, nor if all quotas are used up. Where all
 * are quotas, `areAllQuotas`.
 */
export function codeOf(judged: readonly Judged[], areAllQuotas: boolean): Code {
  let quotas = 0
  let quotasDenied = 0
  for (const { rule, decision } of judged) {
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
 * The limit that speaks to the client: where the call is let pass, the one with the least remaining
 * of those that it was charged to; else the one with the longest wait of those that deny it alone,
 * or with the shortest of the quotas that deny it together.
 */
export function toldOf(
  judged: readonly Judged[],
  code: Code,
  areAllQuotas = false,
): Told | undefined {
  const mayOutrank = code === 'OK' ? isBefore : outranks(areAllQuotas)
  let speaker: Judged | undefined
  for (const one of judged) {
    if (one.rule.isShadow) continue
    if (code === 'OVER_LIMIT' ? one.decision.admitted : one.hits <= 0) continue
    if (speaker === undefined || mayOutrank(one, speaker)) speaker = one
  }
  if (speaker?.rule.limit === undefined) return undefined
  const { rule, decision } = speaker
  return {
    rule: nameOf(rule),
    limit: capacityOf(rule),
    remaining: code === 'OVER_LIMIT' ? 0 : decision.remaining,
    resetUs: decision.resetUs,
    decidedAtUs: decision.decidedAtUs,
    retryAfterSeconds: code === 'OVER_LIMIT' ? waitSecondsOf(rule, decision) : 0,
  }
}

/**
 * The limit that the headers of envoyproxy/ratelimit tell of, shadows and looks included: the last
 * that denies and is no quota, else the first with the least remaining.
 */
export function referenceStandingOf(
  judged: readonly Judged[],
  areAllQuotas: boolean,
): Standing | undefined {
  let speaker: Judged | undefined
  let least = UINT32_MAX
  for (const one of decidingOf(judged)) {
    if (one === undefined) continue
    const isQuota = areAllQuotas || one.rule.isQuota
    const remaining = remainingOf(one)
    if ((isQuota || codeOfOne(one) === 'OK') && remaining >= least) continue
    speaker = one
    least = remaining
  }
  if (speaker === undefined) return undefined
  return { limit: capacityOf(speaker.rule), remaining: least, resetUs: speaker.decision.resetUs }
}

/** Which of two limits that deny speaks: who denies alone longest, else the quota free first. */
function outranks(areAllQuotas: boolean): (one: Judged, other: Judged) => boolean {
  const isQuota = ({ rule }: Judged) => areAllQuotas || rule.isQuota
  return (one, other) => {
    if (isQuota(one) !== isQuota(other)) return isQuota(other)
    return isQuota(one) ? isBefore(other, one) : isBefore(one, other)
  }
}

/** When a limit is whole again, in seconds since the Unix epoch, rounded up. */
export function resetAtOf(
  { resetUs, decidedAtUs }: Pick<Told, 'resetUs' | 'decidedAtUs'>,
  nowMs: number,
): number {
  return Math.ceil(((decidedAtUs ?? nowMs * 1000) + resetUs) / 1_000_000)
}

/** Hits that a rule lets pass at once, if none came before. */
export function capacityOf({ algorithm, limit }: Rule): number {
  if (limit === undefined) return UINT32_MAX
  return algorithm.takesBurst ? limit.burst : limit.requests
}

/** How a rule is called where clients see it. */
function nameOf({ name, path }: Rule): string {
  return name ?? path
}

/** Which of two limits speaks first: it denies longest, or has least remaining. */
function isBefore(one: Judged, other: Judged): boolean {
  const [a, b] = [one.decision, other.decision]
  if (a.admitted !== b.admitted) return !a.admitted
  return a.admitted ? a.remaining < b.remaining : a.retryAfterUs > b.retryAfterUs
}

function secondsOf(us: number): number {
  return Math.ceil(us / 1_000_000)
}

/** Whole seconds after which these hits pass; what never passes is asked to wait for a window. */
function waitSecondsOf({ limit }: Rule, { retryAfterUs }: Decision): number {
  const us = Number.isFinite(retryAfterUs) ? retryAfterUs : (limit?.windowUs ?? 0)
  return Math.max(1, secondsOf(us))
}

/** The answers for the descriptors, in their order. */
export function statusesOf(
  unjudged: readonly (Unjudged | undefined)[],
  judged: readonly Judged[],
): DescriptorStatus[] {
  const deciding = decidingOf(judged)
  return unjudged.map((why, at) => {
    const one = deciding[at]
    return one === undefined ? passed(why) : statusOf(one)
  })
}

/** Of each descriptor that has limits the one that decides it; in their order, with gaps. */
function decidingOf(judged: readonly Judged[]): (Judged | undefined)[] {
  const deciding: (Judged | undefined)[] = []
  for (const one of judged) {
    while (deciding.length < one.at) deciding.push(undefined)
    const other = deciding[one.at]
    if (other === undefined || isBefore(one, other)) deciding[one.at] = one
  }
  return deciding
}

function passed(why: Unjudged | undefined): DescriptorStatus {
  const limitRemaining = why === 'unlimited' ? UINT32_MAX : 0
  return { code: 'OK', currentLimit: undefined, limitRemaining, resetSeconds: undefined }
}

function codeOfOne({ rule, decision }: Judged): Code {
  return decision.admitted || rule.isShadow ? 'OK' : 'OVER_LIMIT'
}

/** As an answer can say it. */
function remainingOf({ decision }: Judged): number {
  return decision.admitted ? Math.min(UINT32_MAX, decision.remaining) : 0
}

function statusOf(one: Judged): DescriptorStatus {
  const { rule, decision } = one
  return {
    code: codeOfOne(one),
    currentLimit: {
      requestsPerUnit: rule.limit?.requests ?? 0,
      unit: rule.unit,
      name: rule.name,
    },
    limitRemaining: remainingOf(one),
    resetSeconds: secondsOf(decision.resetUs),
  }
}

/** What the rules that let pass have to say, merged; of two values that differ the first stays. */
export function metadataOf(
  judged: readonly Judged[],
  statuses: readonly DescriptorStatus[],
): JsonObject | undefined {
  let merged: JsonObject | undefined
  for (const { at, rule } of judged) {
    if (rule.metadata === undefined || statuses[at]?.code !== 'OK') continue
    merged = merged === undefined ? rule.metadata : mergedOf(merged, rule.metadata)
  }
  return merged
}

function mergedOf(first: JsonObject, second: JsonObject): JsonObject {
  const merged = new Map(Object.entries(first))
  for (const [key, value] of Object.entries(second)) {
    const there = merged.get(key)
    if (there === undefined) merged.set(key, value)
    else if (isObject(there) && isObject(value)) merged.set(key, mergedOf(there, value))
  }
  return Object.fromEntries(merged)
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
