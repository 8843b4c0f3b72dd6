// What the answer to a call says besides the verdict: headers and body for the client of the proxy,
// and metadata for the proxy itself.
import type { LimitRequest } from '../limits/descriptor.ts'
import type { JsonObject } from '../limits/rule.ts'
import { type Code, resetAtOf, type Told } from '../limits/verdict.ts'

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
  /** The problem document of a call that is not let pass, and its media type. */
  readonly renderBody: (told: Told) => { readonly type: string; readonly text: string }
  readonly nowMs: () => number
}

/** Makes what renders the words. */
export function createClientWords(
  options: ClientWordsOptions,
): (told: Told, code: Code) => ClientWords {
  const { hasHeaders, referenceHeaders, renderBody, nowMs } = options
  return (told, code) => {
    const headers: [string, string][] = []
    if (referenceHeaders !== undefined) {
      headers.push(
        [referenceHeaders.limit, String(told.limit)],
        [referenceHeaders.remaining, String(told.remaining)],
        [referenceHeaders.reset, String(Math.ceil(told.resetUs / 1_000_000))],
      )
    }
    if (!hasHeaders) return { headers, body: undefined }
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

/**
 * Metadata for the proxy: `rls: ok`, by which it knows that the limiter answered, and where
 * `isWhole` the request and what its rules have to say, in the reference's shape.
 */
export function renderMetadata(
  isWhole: boolean,
  request: LimitRequest,
  rules: JsonObject | undefined,
): JsonObject {
  if (!isWhole) return answered
  return {
    ...answered,
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
