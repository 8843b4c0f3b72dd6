// A reset by an operator: its log lines, and what it does if the store fails.
import { expect, test } from '@jest/globals'
import type { CounterUpdate } from '../../limits/counter-store.ts'
import { parseRules } from '../../limits/parse-rules.ts'
import { createResetLimits } from './reset-limits.ts'

const text = `
domain: edge
descriptors:
- key: client
  rate_limit: { unit: minute, requests_per_unit: 1 }
`
const descriptor = {
  entries: [{ key: 'client', value: 'a' }],
  override: undefined,
  hits: undefined,
}
const counter = { domain: 'edge', rule: 'edge.client', values: ['a'] }

/** A reset with a store, and what it logs and removes elsewhere. */
function createReset(store: (updates: readonly CounterUpdate[]) => Promise<void>) {
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
  const logged: unknown[] = []
  const removed: string[] = []
  const reset = createResetLimits({
    rules: () => parsed.rules,
    options: { areAllShadow: false, areAllQuotas: false, denyConsumes: true },
    store: { reset: store },
    shares: { reset: (updates) => Promise.resolve(void removed.push(`${updates.length} shares`)) },
    denyCache: { invalidate: (key) => void removed.push(`denial of ${key}`) },
    log: { warn: (...line: unknown[]) => void logged.push(line) },
  })
  return { reset: () => reset({ domain: 'edge', descriptor }), logged, removed }
}

test('a reset logs each counter, and removes shares and denials of this process', async () => {
  const keys: string[] = []
  const { reset, logged, removed } = createReset((updates) => {
    keys.push(...updates.map(({ key }) => key))
    return Promise.resolve()
  })
  expect(await reset()).toEqual(['edge.client'])
  expect(keys).toHaveLength(1)
  expect(removed).toEqual(['1 shares', `denial of ${keys.join()}`])
  expect(logged).toEqual([[counter, 'counter reset by an operator']])
})

test('a reset that fails logs each counter, which may have been reset', async () => {
  const err = new Error('Redis cannot remove the counters')
  const { reset, logged, removed } = createReset(() => Promise.reject(err))
  await expect(reset()).rejects.toBe(err)
  expect(removed).toHaveLength(2)
  expect(logged).toEqual([
    [
      { ...counter, err },
      'the reset of a counter by an operator failed: it may have been reset anyway',
    ],
  ])
})
