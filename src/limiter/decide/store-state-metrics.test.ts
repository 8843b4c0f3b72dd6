// What metrics, statistics, health and the log show of the connections to Redis and their circuit.
import { expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { RuleStats } from '../stats/rule-stats.ts'
import { createStoreStateReports } from './report-store-state.ts'
import { trackStoreHealth } from './store-health.ts'

function openReports(...connections: readonly string[]) {
  const logged: unknown[] = []
  const logTo = (level: string) => (fields: unknown, message?: string) => {
    logged.push(message === undefined ? [level, fields] : [level, fields, message])
  }
  const log = { info: logTo('info'), warn: logTo('warn'), error: logTo('error') }
  const states: string[] = []
  const storeHealth = trackStoreHealth(connections, (state) => states.push(state))
  const [stats, metrics] = [new RuleStats({ nearLimitRatio: 0.8 }), createMetrics()]
  const reports = createStoreStateReports({ storeHealth, stats, metrics, log })
  const valuesOf = async (name: string) =>
    (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith(name))
  return { ...reports, stats, states, logged, valuesOf }
}

test('a connection is reported when it becomes available and unavailable', () => {
  const { listenersOf, states, logged } = openReports('counters', 'per-second')
  const [counters, perSecond] = [listenersOf('counters'), listenersOf('per-second')]
  const err = new Error('ECONNREFUSED')
  perSecond.onDown(err, 'info')
  expect(states).toEqual(['down'])
  counters.onUp()
  perSecond.onUp()
  expect(states).toEqual(['down', 'up'])
  counters.onDown(err, 'warn')
  expect(states).toEqual(['down', 'up', 'down'])
  expect(logged).toEqual([
    ['info', { err, redis: 'per-second' }, 'Redis unavailable'],
    ['info', { redis: 'counters' }, 'Redis available'],
    ['info', { redis: 'per-second' }, 'Redis available'],
    ['warn', { err, redis: 'counters' }, 'Redis unavailable'],
  ])
})

test('each failed call is counted by its reason', async () => {
  const { onFailure, stats, valuesOf } = openReports()
  for (const cause of ['timeout', new Error('NOPERM'), 'timeout', undefined]) onFailure(cause)
  expect(stats.service.redisError).toBe(4)
  expect((await valuesOf('curtail_limiter_store_failures_total')).sort()).toEqual([
    'curtail_limiter_store_failures_total{reason="error"} 2',
    'curtail_limiter_store_failures_total{reason="timeout"} 2',
  ])
})

test('the circuit sets the metric and the health, and its close is logged', async () => {
  const { onFailure, onOpenChange, listenersOf, states, logged, valuesOf } = openReports('counters')
  const metric = () => valuesOf('curtail_limiter_store_unavailable')
  listenersOf('counters').onUp()
  const cause = new Error('NOPERM')
  onFailure(cause)
  onOpenChange(true, false)
  expect(await metric()).toEqual(['curtail_limiter_store_unavailable 1'])
  onOpenChange(false, true)
  expect(await metric()).toEqual(['curtail_limiter_store_unavailable 0'])
  expect(states).toEqual(['up', 'down', 'up'])
  expect(logged.slice(1)).toEqual([
    [
      'error',
      { err: cause },
      'calls to Redis fail or time out: the on_store_error of each rule applies',
    ],
    ['info', 'Redis responds: counting in Redis'],
  ])
})
