// A verdict as a RateLimitResponse in proto3-JSON: fields with their default value are omitted, as
// in envoyproxy/ratelimit.
import type { DescriptorStatus, Verdict } from '../../limits/verdict.ts'

/** Renders a verdict as a JSON string. */
export function renderJsonVerdict(verdict: Verdict): string {
  const { code, statuses, responseHeaders, body, dynamicMetadata } = verdict
  return JSON.stringify({
    overallCode: code,
    statuses: unlessEmpty(statuses.map(renderStatus)),
    responseHeadersToAdd: unlessEmpty(responseHeaders.map(([key, value]) => ({ key, value }))),
    rawBody: body === undefined ? undefined : Buffer.from(body).toString('base64'),
    dynamicMetadata,
  })
}

function renderStatus(status: DescriptorStatus): object {
  const { code, currentLimit, limitRemaining, resetSeconds } = status
  return {
    code,
    currentLimit: currentLimit === undefined ? undefined : renderLimit(currentLimit),
    limitRemaining: limitRemaining === 0 ? undefined : limitRemaining,
    durationUntilReset: resetSeconds === undefined ? undefined : `${resetSeconds}s`,
  }
}

function renderLimit(limit: NonNullable<DescriptorStatus['currentLimit']>): object {
  const { requestsPerUnit, unit, name } = limit
  return {
    requestsPerUnit: requestsPerUnit === 0 ? undefined : requestsPerUnit,
    unit,
    name: name === '' ? undefined : name,
  }
}

function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}
