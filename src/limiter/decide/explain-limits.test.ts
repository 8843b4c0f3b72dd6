// The explanation of a descriptor: the rules that match, and their counters.
import { expect, test } from '@jest/globals'
import { parseRules } from '../../limits/parse-rules.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createExplainLimits } from './explain-limits.ts'
import type { GuardedStore } from './guard-store.ts'

const source = `
domain: d
descriptors:
- key: client
  rate_limits:
  - { name: burst, requests_per_unit: 3, unit: second }
  - { name: daily, requests_per_unit: 9, unit: day }
- key: leaky
  rate_limit: { algorithm: leaky_bucket, requests_per_unit: 5, unit: second }
- key: free
  rate_limit: { unlimited: true }
`
const parsed = parseRules([{ name: 'f', text: source }], { mergeDomains: false })
if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
const { rules } = parsed
const options = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }
const memory = createMemoryCounterStore({ nowUs: () => 600_000 })
const inMemory: Pick<GuardedStore, 'decide'> = { decide: (updates) => memory.consume(updates) }

const explain = (key: string, store = inMemory) =>
  createExplainLimits({ rules: () => rules, store, options })({
    domain: 'd',
    descriptor: { entries: [{ key, value: 'a' }] },
  })

test('lists the counter of each rule that matches, and counts nothing', async () => {
  const lines = [
    'client=a: any value of the key, a counter for each value, at d.client',
    'hits d.client: fixed_window, 3 per second (burst)',
    'hits d.client: fixed_window, 9 per day (daily)',
    'counter of d.client (burst): 3 remaining',
    'counter of d.client (daily): 9 remaining',
  ]
  expect(await explain('client')).toEqual(lines)
  expect(await explain('client')).toEqual(lines)
})

test('an unused leaky bucket admits one hit, and reports no wait', async () => {
  expect((await explain('leaky')).at(-1)).toBe('counter of d.leaky: 1 remaining')
})

test('reads no counter if no limit applies', async () => {
  const decide = () => Promise.reject(new Error('the store is read'))
  expect(await explain('free', { decide })).toEqual([
    'free=a: any value of the key, a counter for each value, at d.free',
    'hits d.free: unlimited',
  ])
  expect((await explain('other', { decide })).at(-1)).toContain('no rule')
})

test('reports that the counters are unknown if the store does not respond', async () => {
  const decide = () => Promise.resolve({ delayedResult: undefined })
  expect((await explain('client', { decide })).slice(-2)).toEqual([
    'hits d.client: fixed_window, 9 per day (daily)',
    'counters: unknown, Redis is slow or unavailable',
  ])
})
