// Metrics of the lists that operators maintain: API keys and blocked targets.
import type { MetricFactory } from './metric-factory.ts'

/** Creates the metrics. The label `list` is the name of a list, such as `api-keys`. */
export function listMetrics({ counter, gauge }: MetricFactory) {
  return {
    listEntries: gauge('curtail_list_entries', 'Entries of an operator list in use, by list.', [
      'list',
    ]),
    listFaults: gauge(
      'curtail_list_faults',
      'Lines ignored when an operator list was last loaded, by list; 1 if it was not readable.',
      ['list'],
    ),
    blocked: counter(
      'curtail_blocked_total',
      'Creates and redirects rejected because the target is blocked, by route.',
      ['route'],
    ),
  }
}
