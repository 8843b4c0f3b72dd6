// What the log contains while Redis cannot be used.
import { expect, test } from '@jest/globals'
import { messageOf } from '../../resilience/message-of.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { RuleStats } from '../stats/rule-stats.ts'
import { createStoreStateReports } from './report-store-state.ts'
import { trackStoreHealth } from './store-health.ts'

test('each cause of an outage is logged once per outage, up to a maximum', () => {
  const causes: string[] = []
  const log = {
    info: () => undefined,
    warn: () => undefined,
    error: ({ err }: { err?: unknown }) => causes.push(messageOf(err)),
  }
  const storeHealth = trackStoreHealth(['counters'], () => undefined)
  const [stats, metrics] = [new RuleStats({ nearLimitRatio: 0.8 }), createMetrics()]
  const { onFailure, onOpenChange, onProbeFailure } = createStoreStateReports({
    ...{ storeHealth, stats, metrics, log },
  })
  onFailure('timeout')
  onOpenChange(true, false)
  for (const cause of ['timeout', 'NOPERM', 'timeout', 'NOPERM']) onProbeFailure(new Error(cause))
  expect(causes).toEqual(['timeout', 'NOPERM'])
  onOpenChange(false, true)
  onFailure(new Error('NOPERM'))
  onOpenChange(true, false)
  expect(causes).toEqual(['timeout', 'NOPERM', 'NOPERM'])
  for (let n = 0; n < 100; n++) onProbeFailure(new Error(`cause ${n}`))
  expect(causes).toHaveLength(2 + 10)
})
