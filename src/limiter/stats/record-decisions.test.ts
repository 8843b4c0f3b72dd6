// Where a decision is counted, and the log of each minute. top-values.test.ts tests its lines.
import { afterEach, expect, jest, test } from '@jest/globals'
import { rulesOf } from '../../../test/kit/rules-file.ts'
import { planChecks } from '../../limits/plan-checks.ts'
import { createRecorder, startLoggingTopValues } from './record-decisions.ts'
import { RuleStats } from './rule-stats.ts'
import { TopValues } from './top-values.ts'

afterEach(() => {
  jest.useRealTimers()
})

const rules = rulesOf(`
domain: d
descriptors:
- key: client
  rate_limit: {algorithm: token_bucket, unit: minute, requests_per_unit: 10, burst: 20}
- {key: shadow, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 10}}
`)

function createRecording({ countsTop }: { countsTop: boolean }) {
  const stats = new RuleStats({ nearLimitRatio: 0.5 })
  const top = countsTop ? new TopValues({ random: Math.random, nowMs: 0 }) : undefined
  const labels: unknown[] = []
  const decisions = { inc: (one: unknown) => void labels.push(one) }
  const record = createRecorder({ stats, top, decisions })
  const decide = (key: string, source: 'store' | 'deny-cache', decision: object) => {
    const descriptors = [{ entries: [{ key, value: 'v' }] }]
    const options = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }
    const { checks } = planChecks(rules, { domain: 'd', hits: 3, descriptors }, options)
    const whole = { admitted: true, remaining: 0, over: 0, resetUs: 0, retryAfterUs: 0 }
    for (const check of checks) {
      record(check, { ...whole, next: undefined, expiresInUs: 0, ...decision }, source)
    }
  }
  return { stats, top, labels, decide }
}

test('a decision counts for its rule, its values and its source', () => {
  const { stats, top, labels, decide } = createRecording({ countsTop: true })
  decide('client', 'store', { remaining: 8 }) // 12 of the burst of 20 are used: 2 are near it
  decide('client', 'deny-cache', { admitted: false, over: 1 })
  expect(stats.countersOf('d.client')).toMatchObject({
    ...{ total_hits: 6, within_limit: 3, near_limit: 2, over_limit: 3 },
    ...{ over_limit_with_local_cache: 3, shadow_mode: 0 },
  })
  expect(labels).toEqual([
    { source: 'store', result: 'admitted' },
    { source: 'deny-cache', result: 'denied' },
  ])
  expect(top?.read(1)[0]?.top).toMatchObject([{ rule: 'd.client', hits: 6, denied: 3 }])
  expect(stats.audit.take()).toEqual([])
})

test('hits that only shadow mode admits are audited', () => {
  const { stats, decide } = createRecording({ countsTop: false })
  decide('shadow', 'store', { admitted: false, over: 2 })
  expect(stats.countersOf('d.shadow').shadow_mode).toBe(2)
  expect(stats.audit.take()).toEqual([expect.stringMatching(/^[\w-]{22}=2$/)])
})

test('each minute is logged until the log is stopped', async () => {
  jest.useFakeTimers({ now: 1_000_000 })
  const { top, decide } = createRecording({ countsTop: true })
  if (top === undefined) throw new Error('no top values')
  const lines: unknown[] = []
  const log = { info: (one: unknown) => void lines.push(one) }
  const stop = startLoggingTopValues(top, log as never)
  decide('client', 'store', { admitted: false, over: 1 })
  await jest.advanceTimersByTimeAsync(59_999)
  expect(lines).toEqual([])
  await jest.advanceTimersByTimeAsync(1)
  expect(lines).toEqual([{ rule: 'd.client', values: ['v'], hits: 3, denied: 3 }])
  await jest.advanceTimersByTimeAsync(60_000)
  await stop()
  decide('client', 'store', { admitted: false, over: 1 })
  await jest.advanceTimersByTimeAsync(120_000)
  expect(lines).toHaveLength(1)
})
