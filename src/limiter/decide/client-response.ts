// Renders the headers and the body of a verdict, for the proxy's client, and its metadata, for the
// proxy itself. The reference is envoyproxy/ratelimit.
import type { LimitRequest } from '../../limits/descriptor.ts'
import type { JsonObject } from '../../limits/rule.ts'
import {
  type Code,
  type CheckedLimit,
  referenceLimitStateOf,
  resetAtOf,
  type ReportedLimit,
} from '../../limits/verdict.ts'

/** Response headers, and the body of a denial, for the proxy's client. */
export interface ClientResponse {
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | undefined
}

/** The description of LIMIT_CLIENT_HEADERS. */
export const CLIENT_HEADERS_ABOUT =
  "whether responses have Curtail's own X-RateLimit-* headers, and denials also Retry-After and " +
  'a problem document'

/** The options of the renderer. */
export interface ResponseOptions {
  /** Whether responses have X-RateLimit-*, and denials Retry-After and a problem document. */
  readonly hasClientHeaders: boolean
  /** Names of the headers of envoyproxy/ratelimit; `undefined`: they are disabled. */
  readonly referenceHeaders:
    { readonly limit: string; readonly remaining: string; readonly reset: string } | undefined
  /** Whether every rule is a quota. */
  readonly areAllQuotas: boolean
  /** Renders the problem document of a denied call, with its media type. */
  readonly renderBody: (reported: ReportedLimit) => { readonly type: string; readonly body: string }
  readonly nowMs: () => number
}

/** The input of the renderer. */
export interface ClientResponseSource {
  readonly code: Code
  /** The limit to report to the client, if any applies. */
  readonly reported: ReportedLimit | undefined
  /** All limits of the call, in the order of its descriptors. */
  readonly checked: readonly CheckedLimit[]
}

/** Creates the renderer. */
export function createResponseRenderer(
  options: ResponseOptions,
): (source: ClientResponseSource) => ClientResponse {
  const { hasClientHeaders, referenceHeaders, renderBody, nowMs } = options
  return ({ code, reported, checked }) => {
    const headers: [string, string][] = []
    const state = referenceHeaders && referenceLimitStateOf(checked, options.areAllQuotas)
    if (referenceHeaders !== undefined && state !== undefined) {
      headers.push(
        [referenceHeaders.limit, String(state.limit)],
        [referenceHeaders.remaining, String(state.remaining)],
        [referenceHeaders.reset, String(Math.ceil(state.resetUs / 1_000_000))],
      )
    }
    if (!hasClientHeaders || reported === undefined) return { headers, body: undefined }
    const isNotDuplicate = ([name]: readonly [string, string]) =>
      !headers.some(([other]) => other.toLowerCase() === name.toLowerCase())
    const ours: [string, string][] = [
      ['X-RateLimit-Limit', String(reported.limit)],
      ['X-RateLimit-Remaining', String(reported.remaining)],
      ['X-RateLimit-Reset', String(resetAtOf(reported, nowMs()))],
    ]
    headers.push(...(referenceHeaders === undefined ? ours : ours.filter(isNotDuplicate)))
    if (code === 'OK') return { headers, body: undefined }
    const { type, body } = renderBody(reported)
    headers.push(['Retry-After', String(reported.retryAfterSeconds)], ['Content-Type', type])
    return { headers, body }
  }
}

/** The metadata that a response has. */
export interface MetadataOptions {
  /** RESPONSE_DYNAMIC_METADATA: request and rule metadata, as in envoyproxy/ratelimit. */
  readonly hasReferenceMetadata: boolean
  /** LIMIT_METADATA: `rule`, and `rls: ok`, which shows the proxy that the limiter responded. */
  readonly hasOwnMetadata: boolean
}

/** The input of `renderMetadata`. */
export interface MetadataSource {
  readonly request: LimitRequest
  /** Merged metadata of the rules with an admitted descriptor, even if the call is denied. */
  readonly ruleMetadata: JsonObject | undefined
  /** Name of the rule that denied the call; `undefined` if the call is admitted. */
  readonly ruleName: string | undefined
}

/** Renders the metadata for the proxy, if any. */
export function renderMetadata(
  { hasReferenceMetadata, hasOwnMetadata }: MetadataOptions,
  { request, ruleMetadata, ruleName }: MetadataSource,
): JsonObject | undefined {
  const hasRule = hasOwnMetadata && ruleName !== undefined
  const own = { ...(hasOwnMetadata && responseMarker), ...(hasRule && { rule: ruleName }) }
  if (!hasReferenceMetadata) return hasOwnMetadata ? own : undefined
  return {
    ...own,
    domain: request.domain,
    descriptors: request.descriptors.map(({ entries, hits }) => ({
      entries: entries.map(({ key, value }) => `${key}=${value}`),
      ...(hits !== undefined && { hitsAddend: hits }),
    })),
    hitsAddend: request.hits,
    ...(ruleMetadata !== undefined && { metadata: ruleMetadata }),
  }
}

const responseMarker: JsonObject = { rls: 'ok' }
