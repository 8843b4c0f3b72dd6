// Limits by client: prepaid hits admit no client beyond its limit, deny none below it, and the
// reported remainder is exact.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseRules } from '../../limits/rules.ts'
import { tokenBucket } from '../../limits/token-bucket.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createClientLimits } from './client-limits.ts'

const START_MS = 1_790_000_000_000
/** How long prepaid hits stay valid. */
const PREPAID_MS_MAX = 20

function limitsOf(rateLimit: string) {
  const yaml = `
domain: curtail
descriptors:
  - key: route
    value: redirect
    descriptors: [{ key: client, rate_limit: ${rateLimit} }]
  - key: route
    value: unknown
    descriptors:
      - key: client
        rate_limit: { unit: day, algorithm: sliding_window_counter, requests_per_unit: 3 }
`
  const parsed = parseRules([{ name: 'rules', text: yaml }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  const clock = { nowMs: START_MS }
  const store = createMemoryCounterStore({ nowUs: () => clock.nowMs * 1000 })
  const limits = createClientLimits({ rules: parsed.rules, store })
  /** A look-up as on the fast path: whether it is admitted, and what remains. */
  const lookup = (address: string) => {
    const client = limits.clientOf(address)
    const remaining = limits.takePrepaid(client, clock.nowMs)
    if (remaining >= 0) return { admitted: true, remaining }
    const { admitted, reported } = limits.countLookup(client, clock.nowMs)
    return { admitted, remaining: reported?.remaining ?? NaN }
  }
  return { limits, clock, lookup }
}

const bucket = { requests: 1000, windowUs: 1_000_000, burst: 3000, denyConsumes: false }
const bucketRule = '{ algorithm: token_bucket, unit: second, requests_per_unit: 1000, burst: 3000 }'

test('denies a look-up only if a bucket that counts each look-up denies it', () => {
  const spans = fc.array(
    fc.record({
      lookups: fc.integer({ min: 1, max: 900 }),
      waitMs: fc.integer({ min: 0, max: 60 }),
    }),
    { minLength: 1, maxLength: 30 },
  )
  fc.assert(
    fc.property(spans, (history) => {
      const { clock, lookup } = limitsOf(bucketRule)
      let state: readonly number[] | undefined
      const timesMs: number[] = []
      for (const { lookups, waitMs } of history) {
        for (let one = 0; one < lookups; one++) {
          const nowUs = clock.nowMs * 1000
          const exact = tokenBucket.decide({ state, cost: 1, nowUs, limit: bucket })
          const { admitted } = lookup('192.0.2.1')
          if (!admitted) expect(exact.admitted).toBe(false)
          else timesMs.push(clock.nowMs)
          if (admitted) {
            // Counts every admitted look-up, also beyond the limit.
            const countsAll = { ...bucket, burst: 10_000 }
            state = tokenBucket.decide({ state, cost: 1, nowUs, limit: countsAll }).next ?? state
          }
        }
        clock.nowMs += waitMs
      }
      // In any period at most the limit of that period plus PREPAID_MS_MAX is admitted.
      for (let from = 0; from < timesMs.length; from += 97) {
        for (let to = from; to < timesMs.length; to += 89) {
          const spanMs = (timesMs[to] ?? 0) - (timesMs[from] ?? 0) + PREPAID_MS_MAX
          expect(to - from + 1).toBeLessThanOrEqual(3000 + spanMs)
        }
      }
    }),
    { numRuns: 60 },
  )
})

test('reports the exact remainder, prepaid or not', () => {
  const { lookup } = limitsOf(bucketRule)
  const reported = Array.from({ length: 200 }, () => lookup('192.0.2.1').remaining)
  expect(reported).toEqual(Array.from({ length: 200 }, (_, at) => 2999 - at))
})

test('refunds unused prepaid hits', () => {
  const { clock, lookup } = limitsOf(bucketRule)
  for (let one = 0; one < 40; one++) lookup('192.0.2.1')
  clock.nowMs += 10_000
  expect(lookup('192.0.2.1').remaining).toBe(2999)
})

test('prepays nothing for a small limit or one that is not a token bucket', () => {
  for (const rule of [
    '{ algorithm: token_bucket, unit: day, requests_per_unit: 5 }',
    '{ unit: year, requests_per_unit: 1000 }',
  ]) {
    const { limits, clock, lookup } = limitsOf(rule)
    lookup('192.0.2.1')
    expect(limits.takePrepaid(limits.clientOf('192.0.2.1'), clock.nowMs)).toBe(-1)
  }
})

test('too many unknown codes deny the next look-up, even if it is prepaid', () => {
  const { limits, lookup } = limitsOf(bucketRule)
  const client = limits.clientOf('192.0.2.1')
  for (let one = 0; one < 3; one++) {
    expect(lookup('192.0.2.1').admitted).toBe(true)
    limits.countMiss(client)
  }
  expect(lookup('192.0.2.1').admitted).toBe(false)
  expect(lookup('192.0.2.2').admitted).toBe(true)
})

test('connections from one network share a client', () => {
  const { limits } = limitsOf(bucketRule)
  expect(limits.clientOf('2001:db8:1:2::1')).toBe(limits.clientOf('2001:db8:1:2:ffff::9'))
  expect(limits.clientOf('192.0.2.1')).not.toBe(limits.clientOf('192.0.2.2'))
})
