// What the answer to a call says besides the verdict: headers and body for the client of the proxy,
// and metadata for the proxy itself.
import type { LimitRequest } from '../../limits/descriptor.ts'
import type { JsonObject } from '../../limits/rule.ts'
import {
  type Code,
  type Judged,
  referenceStandingOf,
  resetAtOf,
  type Told,
} from '../../limits/verdict.ts'

/** For the client of the proxy. */
export interface ClientWords {
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | undefined
}

/** What LIMIT_CLIENT_HEADERS is for. */
export const CLIENT_HEADERS_ABOUT =
  'whether answers carry X-RateLimit-*, and where they deny Retry-After and a problem document'

/** Which words are said. */
export interface ClientWordsOptions {
  /** X-RateLimit-*, Retry-After and a problem document. */
  readonly hasHeaders: boolean
  /** The reference's headers, by their names; `undefined`: none. */
  readonly referenceHeaders:
    { readonly limit: string; readonly remaining: string; readonly reset: string } | undefined
  /** Whether every rule is a quota. */
  readonly areAllQuotas: boolean
  /** The problem document of a call that is not let pass, and its media type. */
  readonly renderBody: (told: Told) => { readonly type: string; readonly text: string }
  readonly nowMs: () => number
}

/** What an answer speaks of. */
export interface Spoken {
  readonly code: Code
  /** The limit of which the client is told, if one speaks. */
  readonly told: Told | undefined
  /** All limits of the call, by its descriptors. */
  readonly judged: readonly Judged[]
}

/** Makes what renders the words. */
export function createClientWords(options: ClientWordsOptions): (spoken: Spoken) => ClientWords {
  const { hasHeaders, referenceHeaders, renderBody, nowMs } = options
  return ({ code, told, judged }) => {
    const headers: [string, string][] = []
    const standing = referenceHeaders && referenceStandingOf(judged, options.areAllQuotas)
    if (referenceHeaders !== undefined && standing !== undefined) {
      headers.push(
        [referenceHeaders.limit, String(standing.limit)],
        [referenceHeaders.remaining, String(standing.remaining)],
        [referenceHeaders.reset, String(Math.ceil(standing.resetUs / 1_000_000))],
      )
    }
    if (!hasHeaders || told === undefined) return { headers, body: undefined }
    const isFree = ([name]: readonly [string, string]) =>
      !headers.some(([other]) => other.toLowerCase() === name.toLowerCase())
    const ours: [string, string][] = [
      ['X-RateLimit-Limit', String(told.limit)],
      ['X-RateLimit-Remaining', String(told.remaining)],
      ['X-RateLimit-Reset', String(resetAtOf(told, nowMs()))],
    ]
    headers.push(...(referenceHeaders === undefined ? ours : ours.filter(isFree)))
    if (code === 'OK') return { headers, body: undefined }
    const body = renderBody(told)
    headers.push(['Retry-After', String(told.retryAfterSeconds)], ['Content-Type', body.type])
    return { headers, body: body.text }
  }
}

/** Which metadata a response carries. */
export interface MetadataOptions {
  /** RESPONSE_DYNAMIC_METADATA: the request and its rules' metadata, in the reference's shape. */
  readonly isWhole: boolean
  /** LIMIT_METADATA: `rls: ok`, by which the proxy detects a response, and `rule`. */
  readonly hasOwn: boolean
}

/** What metadata is rendered from. */
export interface MetadataSource {
  readonly request: LimitRequest
  /** Of the rules that admitted. */
  readonly rules: JsonObject | undefined
  /** Name of the limit that denied. */
  readonly rule: string | undefined
}

/** Metadata for the proxy, if any. */
export function renderMetadata(
  { isWhole, hasOwn }: MetadataOptions,
  { request, rules, rule }: MetadataSource,
): JsonObject | undefined {
  const own = { ...(hasOwn && answered), ...(hasOwn && rule !== undefined && { rule }) }
  if (!isWhole) return hasOwn ? own : undefined
  return {
    ...own,
    domain: request.domain,
    descriptors: request.descriptors.map(({ entries, hits }) => ({
      entries: entries.map(({ key, value }) => `${key}=${value}`),
      ...(hits !== undefined && { hitsAddend: hits }),
    })),
    ...(request.hits !== 0 && { hitsAddend: request.hits }),
    ...(rules !== undefined && { metadata: rules }),
  }
}

const answered: JsonObject = { rls: 'ok' }
