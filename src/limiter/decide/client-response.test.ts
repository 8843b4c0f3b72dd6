// The headers and the body for the proxy's client, and the metadata for the proxy, by setting.
import { describe, expect, test } from '@jest/globals'
import { admitted, decided, denied } from '../../../test/kit/checked-limits.ts'
import { codeOf, reportedLimitOf, type CheckedLimit } from '../../limits/verdict.ts'
import { createResponseRenderer, renderMetadata, type ResponseOptions } from './client-response.ts'

const NOW_MS = 1_790_000_000_000

function responseTo(checked: readonly CheckedLimit[], options: Partial<ResponseOptions> = {}) {
  const render = createResponseRenderer({
    hasClientHeaders: true,
    referenceHeaders: undefined,
    areAllQuotas: false,
    renderBody: ({ rule }) => ({ type: 'text/plain', body: `denied by ${rule}` }),
    nowMs: () => NOW_MS,
    ...options,
  })
  const code = codeOf(checked, options.areAllQuotas ?? false)
  const reported = reportedLimitOf(checked, code, options.areAllQuotas)
  return render({ code, reported, checked })
}

const names = { limit: 'A-Limit', remaining: 'A-Remaining', reset: 'A-Reset' }
const one = [decided({ decision: admitted })]
const over = [decided({ decision: denied })]
const ours = [
  ['X-RateLimit-Limit', '10'],
  ['X-RateLimit-Remaining', '5'],
  ['X-RateLimit-Reset', String(NOW_MS / 1000 + 31)],
]
const reference = [
  ['A-Limit', '10'],
  ['A-Remaining', '5'],
  ['A-Reset', '31'],
]

describe('a response', () => {
  test('that admits has the headers of the limit, but no body', () => {
    expect(responseTo(one)).toEqual({ headers: ours, body: undefined })
  })

  test('that denies has also Retry-After and a body', () => {
    expect(responseTo(over)).toEqual({
      headers: [
        ...[ours[0], ['X-RateLimit-Remaining', '0'], ours[2]],
        ...[
          ['Retry-After', '31'],
          ['Content-Type', 'text/plain'],
        ],
      ],
      body: 'denied by shop.client',
    })
  })

  test('has no headers and no body if LIMIT_CLIENT_HEADERS is false', () => {
    const options = { hasClientHeaders: false }
    expect(responseTo(over, options)).toEqual({ headers: [], body: undefined })
    const both = { ...options, referenceHeaders: names }
    expect(responseTo(one, both)).toEqual({ headers: reference, body: undefined })
  })

  test('has no headers if no limit applies', () => {
    const none = { headers: [], body: undefined }
    expect(responseTo([])).toEqual(none)
    expect(responseTo([], { referenceHeaders: names })).toEqual(none)
  })

  test('may have the headers of envoyproxy/ratelimit, too', () => {
    const { headers } = responseTo(one, { referenceHeaders: names })
    expect(headers).toEqual([...reference, ...ours])
  })

  test('has no header twice, in any letter case', () => {
    const same = { ...names, limit: 'x-ratelimit-LIMIT' }
    const { headers } = responseTo(one, { referenceHeaders: same })
    expect(headers).toEqual([['x-ratelimit-LIMIT', '10'], ...reference.slice(1), ...ours.slice(1)])
  })
})

describe('metadata', () => {
  const request = {
    domain: 'shop',
    descriptors: [
      {
        entries: [
          { key: 'a', value: 'b' },
          { key: 'c', value: '' },
        ],
        hits: 0,
      },
      { entries: [{ key: 'd', value: 'e' }] },
    ],
    hits: 7,
  }
  const own = { hasReferenceMetadata: false, hasOwnMetadata: true }
  const source = { request, ruleMetadata: undefined, ruleName: undefined }

  test('contains the hits of the descriptors that have them', () => {
    const options = { hasReferenceMetadata: true, hasOwnMetadata: false }
    expect(renderMetadata(options, { ...source, ruleName: 'shop.client' })).toStrictEqual({
      domain: 'shop',
      descriptors: [{ entries: ['a=b', 'c='], hitsAddend: 0 }, { entries: ['d=e'] }],
      hitsAddend: 7,
    })
    const ruleMetadata = { tier: 'gold' }
    expect(renderMetadata(options, { ...source, ruleMetadata })).toMatchObject({
      metadata: ruleMetadata,
    })
  })

  test('names the rule of a denial only in its own metadata', () => {
    expect(renderMetadata(own, source)).toStrictEqual({ rls: 'ok' })
    const named = { ...source, ruleName: 'shop.client' }
    expect(renderMetadata(own, named)).toStrictEqual({ rls: 'ok', rule: 'shop.client' })
    const both = { hasReferenceMetadata: true, hasOwnMetadata: true }
    expect(renderMetadata(both, named)).toMatchObject({ rls: 'ok', rule: 'shop.client' })
    const none = { hasReferenceMetadata: false, hasOwnMetadata: false }
    expect(renderMetadata(none, named)).toBeUndefined()
  })
})
