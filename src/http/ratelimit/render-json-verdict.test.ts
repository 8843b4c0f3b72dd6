// Fields with their default value are omitted, as in proto3-JSON.
import { expect, test } from '@jest/globals'
import type { Verdict } from '../../limits/verdict.ts'
import { renderJsonVerdict } from './render-json-verdict.ts'

const empty: Verdict = {
  code: 'OK',
  statuses: [],
  responseHeaders: [],
  body: undefined,
  dynamicMetadata: undefined,
}

test('the shortest response equals that of envoyproxy/ratelimit byte for byte', () => {
  expect(renderJsonVerdict(empty)).toBe('{"overallCode":"OK"}')
  expect(renderJsonVerdict({ ...empty, code: 'OVER_LIMIT' })).toBe('{"overallCode":"OVER_LIMIT"}')
})

test('every field has its proto3-JSON name and format', () => {
  const verdict: Verdict = {
    code: 'OVER_LIMIT',
    statuses: [
      {
        code: 'OVER_LIMIT',
        currentLimit: { requestsPerUnit: 20, unit: 'MINUTE', name: 'per-ip' },
        limitRemaining: 0,
        resetSeconds: 31,
      },
      {
        code: 'OK',
        currentLimit: { requestsPerUnit: 0, unit: undefined, name: undefined },
        limitRemaining: 2 ** 32 - 1,
        resetSeconds: 0,
      },
      { code: 'OK', currentLimit: undefined, limitRemaining: 0, resetSeconds: undefined },
    ],
    responseHeaders: [['Retry-After', '31']],
    body: '{"é": 1}',
    dynamicMetadata: { rls: 'ok', deep: [null, { a: 1 }] },
  }
  expect(JSON.parse(renderJsonVerdict(verdict))).toStrictEqual({
    overallCode: 'OVER_LIMIT',
    statuses: [
      {
        code: 'OVER_LIMIT',
        currentLimit: { requestsPerUnit: 20, unit: 'MINUTE', name: 'per-ip' },
        durationUntilReset: '31s',
      },
      { code: 'OK', currentLimit: {}, limitRemaining: 4294967295, durationUntilReset: '0s' },
      { code: 'OK' },
    ],
    responseHeadersToAdd: [{ key: 'Retry-After', value: '31' }],
    rawBody: Buffer.from('{"é": 1}').toString('base64'),
    dynamicMetadata: { rls: 'ok', deep: [null, { a: 1 }] },
  })
})
