// Limits by client: every lookup is counted, and a client that exceeds its limit of misses is
// denied lookups. Creates with an API key count against the rules for both, or for the key only.
import { describe, expect, test } from '@jest/globals'
import { algorithms } from '../../limits/algorithms.ts'
import { parseRules } from '../../limits/parse-rules.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createClientLimits } from './client-limits.ts'

const START_MS = 1_790_000_000_000

function limitsOf(rateLimit: string, missAlgorithm = 'sliding_window_counter') {
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
        rate_limit: { unit: day, algorithm: ${missAlgorithm}, requests_per_unit: 3 }
`
  const parsed = parseRules([{ name: 'rules', text: yaml }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  const clock = { nowMs: START_MS }
  const store = createMemoryCounterStore({ nowUs: () => clock.nowMs * 1000 })
  const limits = createClientLimits({ rules: parsed.rules, store })
  const lookup = (address: string) => {
    const { admitted, reported } = limits.countLookup(limits.clientOf(address))
    return { admitted, remaining: reported?.remaining }
  }
  return { limits, clock, lookup }
}

const bucketRule = '{ algorithm: token_bucket, unit: second, requests_per_unit: 1000, burst: 3000 }'

test('admits a burst, then denies until a token is available', () => {
  const { clock, lookup } = limitsOf(bucketRule)
  const admitted = Array.from({ length: 3001 }, () => lookup('192.0.2.1').admitted)
  expect(admitted).toEqual([...Array.from({ length: 3000 }, () => true), false])
  clock.nowMs += 1
  expect(lookup('192.0.2.1').admitted).toBe(true)
  expect(lookup('192.0.2.1').admitted).toBe(false)
})

test('reports the exact remainder', () => {
  const { lookup } = limitsOf(bucketRule)
  const reported = Array.from({ length: 200 }, () => lookup('192.0.2.1').remaining)
  expect(reported).toEqual(Array.from({ length: 200 }, (_, at) => 2999 - at))
})

test.each(algorithms)(
  'after too many unknown codes the next lookup is denied: $name',
  ({ name }) => {
    const { limits, clock, lookup } = limitsOf(bucketRule, name)
    const client = limits.clientOf('192.0.2.1')
    for (let one = 0; one < 3; one++) {
      expect(lookup('192.0.2.1').admitted).toBe(true)
      limits.countMiss(client)
      if (name === 'leaky_bucket') clock.nowMs += one < 2 ? 28_800_000 : 0 // admits no burst
    }
    expect(lookup('192.0.2.1').admitted).toBe(false)
    expect(lookup('192.0.2.2').admitted).toBe(true)
  },
)

test('connections from one network share a client', () => {
  const { limits } = limitsOf(bucketRule)
  expect(limits.clientOf('2001:db8:1:2::1')).toBe(limits.clientOf('2001:db8:1:2:ffff::9'))
  expect(limits.clientOf('192.0.2.1')).not.toBe(limits.clientOf('192.0.2.2'))
})

/** Counts creates under rules for `client`, and for `api_key` if it is given. */
function createsOf(apiKeyRule?: string) {
  const apiKey = apiKeyRule === undefined ? '' : `      - {key: api_key, rate_limit: ${apiKeyRule}}`
  const yaml = `
domain: curtail
descriptors:
  - key: route
    value: create
    descriptors:
      - {key: client, rate_limit: {name: of-client, unit: day, requests_per_unit: 2}}
${apiKey}
`
  const parsed = parseRules([{ name: 'rules', text: yaml }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  const store = createMemoryCounterStore({ nowUs: () => START_MS * 1000 })
  const limits = createClientLimits({ rules: parsed.rules, store })
  return (address: string, apiKeyName?: string) => {
    const { admitted, reported } = limits.countCreate(limits.clientOf(address), apiKeyName)
    return [admitted, reported?.rule, reported?.remaining]
  }
}

describe('a create with an API key', () => {
  const replacing = '{name: of-key, unit: day, requests_per_unit: 3, replaces: [{name: of-client}]}'

  test('counts against the limit of the key instead of that of its client', () => {
    const create = createsOf(replacing)
    expect([0, 1, 2, 3].map((at) => create(`192.0.2.${at}`, 'shop'))).toEqual([
      [true, 'of-key', 2],
      [true, 'of-key', 1],
      [true, 'of-key', 0],
      [false, 'of-key', 0],
    ])
    expect(create('192.0.2.1', 'other')).toEqual([true, 'of-key', 2])
    expect(create('192.0.2.1')).toEqual([true, 'of-client', 1])
  })

  test('counts against both if the rule of the key does not replace the other one', () => {
    const create = createsOf('{name: of-key, unit: day, requests_per_unit: 3}')
    expect(create('192.0.2.1', 'shop')).toEqual([true, 'of-client', 1])
    expect(create('192.0.2.1')).toEqual([true, 'of-client', 0])
    expect(create('192.0.2.1', 'shop')).toEqual([false, 'of-client', 0])
    expect(create('192.0.2.2', 'shop')).toEqual([true, 'of-key', 0]) // the denied one counts
  })

  test('counts against the limit of its client if no rule is for API keys', () => {
    const create = createsOf()
    expect(create('192.0.2.1', 'shop')).toEqual([true, 'of-client', 1])
    expect(create('192.0.2.1', 'other')).toEqual([true, 'of-client', 0])
    expect(create('192.0.2.1', 'shop')).toEqual([false, 'of-client', 0])
  })

  test('counts against the same counter after its plan was evicted', () => {
    const create = createsOf(replacing)
    expect(create('192.0.2.1', 'shop')).toEqual([true, 'of-key', 2])
    for (let at = 0; at < 20_001; at++) create('192.0.2.1', `key-${at}`)
    expect(create('192.0.2.1', 'shop')).toEqual([true, 'of-key', 1])
  })
})
