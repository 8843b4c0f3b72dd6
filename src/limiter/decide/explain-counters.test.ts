// The counters that an explanation shows after hits, and of decisions that are absent.
import { expect, test } from '@jest/globals'
import { rulesOf } from '../../../test/kit/rules-file.ts'
import type { Decision } from '../../limits/algorithm.ts'
import { planChecks } from '../../limits/plan-checks.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createExplainLimits, type ExplainLimitsDeps } from './explain-limits.ts'

const rules = rulesOf(`
domain: d
descriptors:
- key: client
  rate_limits:
  - { name: burst, requests_per_unit: 3, unit: second }
  - { requests_per_unit: 9, unit: minute }
- key: bucket
  rate_limit: { algorithm: token_bucket, requests_per_unit: 1, unit: second, burst: 4 }
`)

const options = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }

/** Explains with counters in memory, or with other decisions. */
function createCounters(decide?: ExplainLimitsDeps['store']['decide']) {
  const memory = createMemoryCounterStore({ nowUs: () => 600_000 })
  const inMemory: ExplainLimitsDeps['store']['decide'] = (updates) => memory.consume(updates)
  const store = { decide: decide ?? inMemory }
  const explain = createExplainLimits({ rules: () => rules, store, options })
  const linesOf = async (key: string) => {
    const descriptor = { entries: [{ key, value: 'a' }], hits: 5 }
    const lines = await explain({ domain: 'd', descriptor })
    return lines.filter((line) => line.startsWith('counter of'))
  }
  const consume = (key: string, hits: number) => {
    const request = { domain: 'd', descriptors: [{ entries: [{ key, value: 'a' }] }], hits }
    memory.consumeNow(planChecks(rules, request, options).checks.map(({ update }) => update))
  }
  return { linesOf, consume }
}

test('a counter in use shows what remains, and when its whole limit is available', async () => {
  const { linesOf, consume } = createCounters()
  consume('client', 2)
  consume('bucket', 3)
  expect(await linesOf('client')).toEqual([
    'counter of d.client (burst): 1 remaining, full limit available in 0.4 s',
    'counter of d.client: 7 remaining, full limit available in 59.4 s',
  ])
  expect(await linesOf('bucket')).toEqual([
    'counter of d.bucket: 1 remaining, full limit available in 3.0 s',
  ])
})

test('a decision that is absent shows no remaining hits', async () => {
  const unused: Decision = {
    ...{ admitted: true, remaining: 9, over: 0, resetUs: 0, retryAfterUs: 0 },
    ...{ next: undefined, expiresInUs: 0 },
  }
  const { linesOf } = createCounters(() => Promise.resolve([unused]))
  expect(await linesOf('client')).toEqual([
    'counter of d.client (burst): 9 remaining',
    'counter of d.client: 0 remaining',
  ])
})
