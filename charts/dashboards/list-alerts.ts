// The alert on operator lists: API keys and blocked targets.
import type { Alert } from './alert.ts'
import { released } from './burn-rates.ts'

const { ours } = released
const entries = ours('listEntries')
const because = (reason: string, expr: string) =>
  `label_replace(${expr}, "reason", "${reason}", "", "")`

/**
 * Pods apply a change within seconds, or within 90 s without a controller: while a list changes all
 * the time, the numbers of two pods differ, but their ranges over some minutes overlap.
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
      'The list {{ $labels.list }} is not applied as operators have written it (reason ' +
      '{{ $labels.reason }}; faults: pods ignore lines or cannot read a file, ' +
      'differences: pods have different lists): entries may have no effect',
  },
]
