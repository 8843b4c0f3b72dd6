// The alert for the lists that people maintain: API keys and blocked targets.
import type { Alert } from './alert.ts'
import { releaseSeries } from './burn-rates.ts'

const { ours } = releaseSeries
const entries = ours('listEntries')
const because = (reason: string, expr: string) =>
  `label_replace(${expr}, "reason", "${reason}", "", "")`

/**
 * Pods apply a change within seconds, or within 90 s without a controller: while a list changes
 * often, two pods have different numbers of entries, but the ranges over some minutes overlap.
 */
export const listAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailListNotApplied', severity: 'warning', forSpan: '10m' },
    expr:
      `${because('faults', `max by (list) (${ours('listFaults')}) > 0`)} or ` +
      because(
        'differences',
        `max by (list) (min_over_time(${entries}[5m])) > ` +
          `min by (list) (max_over_time(${entries}[5m]))`,
      ),
    summary:
      'Pods ignore lines of the list {{ $labels.list }}, cannot load it, or do not all use the ' +
      'same version of it (reason {{ $labels.reason }}): some entries may have no effect',
  },
]
