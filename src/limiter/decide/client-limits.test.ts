// Limits by client: charging in advance lets nobody through who should wait, keeps nobody waiting
// who should not, and tells what is left.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseRules } from '../../limits/rules.ts'
import { tokenBucket } from '../../limits/token-bucket.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createClientLimits } from './client-limits.ts'

const BEGUN_MS = 1_790_000_000_000
/** How long hits that were charged in advance may be used. */
const ADVANCE_MS_MAX = 20

function limitsOf(rateLimit: string) {
  const text = `
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
  const parsed = parseRules([{ name: 'rules', text }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  const clock = { nowMs: BEGUN_MS }
  const store = createMemoryCounterStore({ nowUs: () => clock.nowMs * 1000 })
  const limits = createClientLimits({ rules: parsed.rules, store })
  /** A look-up as the lane makes it: whether it is admitted, and what remains. */
  const lookUp = (address: string) => {
    const client = limits.clientOf(address)
    const remaining = limits.takePaid(client, clock.nowMs)
    if (remaining >= 0) return { admitted: true, remaining }
    const { admitted, told } = limits.chargeLookup(client, clock.nowMs)
    return { admitted, remaining: told?.remaining ?? NaN }
  }
  return { limits, clock, lookUp }
}

const bucket = { requests: 1000, windowUs: 1_000_000, burst: 3000, denyConsumes: false }
const bucketRule = '{ algorithm: token_bucket, unit: second, requests_per_unit: 1000, burst: 3000 }'

test('who is refused would be refused by a bucket charged with each look-up', () => {
  const spans = fc.array(
    fc.record({
      lookUps: fc.integer({ min: 1, max: 900 }),
      waitMs: fc.integer({ min: 0, max: 60 }),
    }),
    { minLength: 1, maxLength: 30 },
  )
  fc.assert(
    fc.property(spans, (history) => {
      const { clock, lookUp } = limitsOf(bucketRule)
      let state: readonly number[] | undefined
      const timesMs: number[] = []
      for (const { lookUps, waitMs } of history) {
        for (let one = 0; one < lookUps; one++) {
          const nowUs = clock.nowMs * 1000
          const exact = tokenBucket.decide({ state, cost: 1, nowUs, limit: bucket })
          const { admitted } = lookUp('192.0.2.1')
          if (!admitted) expect(exact.admitted).toBe(false)
          else timesMs.push(clock.nowMs)
          if (admitted) {
            // Counts what was let through, whatever it is.
            const charged = { ...bucket, burst: 10_000 }
            state = tokenBucket.decide({ state, cost: 1, nowUs, limit: charged }).next ?? state
          }
        }
        clock.nowMs += waitMs
      }
      // And in any time no more are let through than in that time and a little longer.
      for (let from = 0; from < timesMs.length; from += 97) {
        for (let to = from; to < timesMs.length; to += 89) {
          const spanMs = (timesMs[to] ?? 0) - (timesMs[from] ?? 0) + ADVANCE_MS_MAX
          expect(to - from + 1).toBeLessThanOrEqual(3000 + spanMs)
        }
      }
    }),
    { numRuns: 60 },
  )
})

test('what is left is told to the hit, whichever were charged in advance', () => {
  const { lookUp } = limitsOf(bucketRule)
  const told = Array.from({ length: 200 }, () => lookUp('192.0.2.1').remaining)
  expect(told).toEqual(Array.from({ length: 200 }, (_, at) => 2999 - at))
})

test('what was not used is given back', () => {
  const { clock, lookUp } = limitsOf(bucketRule)
  for (let one = 0; one < 40; one++) lookUp('192.0.2.1')
  clock.nowMs += 10_000
  expect(lookUp('192.0.2.1').remaining).toBe(2999)
})

test('a small limit, and one that is no bucket, is charged hit by hit', () => {
  for (const rule of [
    '{ algorithm: token_bucket, unit: day, requests_per_unit: 5 }',
    '{ unit: year, requests_per_unit: 1000 }',
  ]) {
    const { limits, clock, lookUp } = limitsOf(rule)
    lookUp('192.0.2.1')
    expect(limits.takePaid(limits.clientOf('192.0.2.1'), clock.nowMs)).toBe(-1)
  }
})

test('one unknown code too many refuses the next look-up, also one that was paid for', () => {
  const { limits, lookUp } = limitsOf(bucketRule)
  const client = limits.clientOf('192.0.2.1')
  for (let one = 0; one < 3; one++) {
    expect(lookUp('192.0.2.1').admitted).toBe(true)
    limits.chargeUnknown(client)
  }
  expect(lookUp('192.0.2.1').admitted).toBe(false)
  expect(lookUp('192.0.2.2').admitted).toBe(true)
})

test('connections of one network share its client', () => {
  const { limits } = limitsOf(bucketRule)
  expect(limits.clientOf('2001:db8:1:2::1')).toBe(limits.clientOf('2001:db8:1:2:ffff::9'))
  expect(limits.clientOf('192.0.2.1')).not.toBe(limits.clientOf('192.0.2.2'))
})
