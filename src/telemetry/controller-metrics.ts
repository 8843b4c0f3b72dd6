// The part of the catalogue that the controller fills. The first ones have controller-runtime's
// and client-go's names and meaning, so that dashboards made for those show ours.
import type { Makers } from './metric-makers.ts'

const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const QUEUE_BUCKETS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000]

/** Metrics of the controller. */
export function controllerMetrics(makers: Makers) {
  return { ...queueMetrics(makers), ...reconcileMetrics(makers), ...watchMetrics(makers) }
}

function queueMetrics({ counter, gauge, histogram }: Makers) {
  const seconds = { buckets: QUEUE_BUCKETS, labelNames: ['name'] as const }
  return {
    queueDepth: gauge('workqueue_depth', 'Keys that wait for a worker.', ['name']),
    queueAdds: counter('workqueue_adds_total', 'Keys that came to wait.', ['name']),
    queueRetries: counter('workqueue_retries_total', 'Keys put back as they failed.', ['name']),
    queueWaitSeconds: histogram(
      'workqueue_queue_duration_seconds',
      'Time that a key waited for a worker.',
      seconds,
    ),
    queueWorkSeconds: histogram(
      'workqueue_work_duration_seconds',
      'Time that a worker took for a key.',
      seconds,
    ),
    queueUnfinishedSeconds: gauge(
      'workqueue_unfinished_work_seconds',
      'Time that workers have spent on keys that are not done yet, summed.',
      ['name'],
    ),
    queueLongestSeconds: gauge(
      'workqueue_longest_running_processor_seconds',
      'Time that the worker longest at one key has spent on it.',
      ['name'],
    ),
  }
}

function reconcileMetrics({ counter, gauge, histogram }: Makers) {
  return {
    reconciles: counter('controller_runtime_reconcile_total', 'Reconciles by their result.', [
      'controller',
      'result',
    ]),
    reconcileErrors: counter(
      'controller_runtime_reconcile_errors_total',
      'Reconciles that failed.',
      ['controller'],
    ),
    terminalReconcileErrors: counter(
      'controller_runtime_terminal_reconcile_errors_total',
      'Reconciles that failed and are not tried again until something changes.',
      ['controller'],
    ),
    reconcilePanics: counter(
      'controller_runtime_reconcile_panics_total',
      'Reconciles that ended by a defect of ours.',
      ['controller'],
    ),
    reconcileSeconds: histogram(
      'controller_runtime_reconcile_time_seconds',
      'Time of a reconcile.',
      {
        buckets: RECONCILE_BUCKETS,
        labelNames: ['controller'],
      },
    ),
    reconcilesMax: gauge('controller_runtime_max_concurrent_reconciles', 'Workers there are.', [
      'controller',
    ]),
    activeWorkers: gauge('controller_runtime_active_workers', 'Workers that are at a key.', [
      'controller',
    ]),
    isLeader: gauge('leader_election_master_status', '1 while this process leads.', ['name']),
    apiRequests: counter('rest_client_requests_total', 'Calls to the API server, by its answer.', [
      'code',
      'method',
      'host',
    ]),
  }
}

function watchMetrics({ counter, gauge }: Makers) {
  return {
    watchFailures: counter(
      'curtail_kube_watch_failures_total',
      'Lists and watches of the API server that failed, by why.',
      ['resource', 'why'],
    ),
    watchLists: counter('curtail_kube_lists_total', 'Lists that were read whole.', ['resource']),
    watchedObjects: gauge('curtail_kube_watched_objects', 'Objects that are known.', ['resource']),
    eventsDropped: counter(
      'curtail_kube_events_dropped_total',
      'Events that were not written, by why.',
      ['why'],
    ),
    poolConditions: gauge(
      'curtail_codepool_conditions',
      'CodePools by condition, its status and its reason.',
      ['type', 'status', 'reason'],
    ),
    refillJobs: counter('curtail_refill_jobs_total', 'Refill Jobs, by what became of them.', [
      'outcome',
    ]),
    poolReadsFailed: counter(
      'curtail_controller_pool_reads_failed_total',
      'Reads of the levels that the store did not answer.',
    ),
  }
}
