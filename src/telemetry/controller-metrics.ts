// The controller's metrics. The first ones have the names and meaning of the metrics of
// controller-runtime and client-go, so that existing dashboards work.
import type { MetricFactory } from './metric-factory.ts'

const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const QUEUE_BUCKETS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000]

/** Metrics of the controller. */
export function controllerMetrics(factory: MetricFactory) {
  return {
    ...queueMetrics(factory),
    ...reconcileMetrics(factory),
    ...watchMetrics(factory),
    ...policyMetrics(factory),
  }
}

function queueMetrics({ counter, gauge, histogram }: MetricFactory) {
  const seconds = { buckets: QUEUE_BUCKETS, labelNames: ['name'] as const }
  return {
    queueDepth: gauge('workqueue_depth', 'Keys that wait for a worker.', ['name']),
    queueAdds: counter('workqueue_adds_total', 'Keys that were added.', ['name']),
    queueRetries: counter('workqueue_retries_total', 'Keys that were re-added after a failure.', [
      'name',
    ]),
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
      'The longest time that a worker has spent on its current key.',
      ['name'],
    ),
  }
}

function reconcileMetrics({ counter, gauge, histogram }: MetricFactory) {
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
      'Reconciles that failed and are not retried until something changes.',
      ['controller'],
    ),
    reconcilePanics: counter(
      'controller_runtime_reconcile_panics_total',
      'Reconciles that failed because of a defect.',
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
    reconcilesMax: gauge('controller_runtime_max_concurrent_reconciles', 'Number of workers.', [
      'controller',
    ]),
    activeWorkers: gauge(
      'controller_runtime_active_workers',
      'Workers that are processing a key.',
      ['controller'],
    ),
    isLeader: gauge('leader_election_master_status', '1 while this process leads.', ['name']),
    apiRequests: counter(
      'rest_client_requests_total',
      'Calls to the API server, by the status of the response.',
      ['code', 'method', 'host'],
    ),
  }
}

function watchMetrics({ counter, gauge }: MetricFactory) {
  return {
    watchFailures: counter(
      'curtail_kube_watch_failures_total',
      'Lists and watches of the API server that failed, by reason.',
      ['resource', 'reason'],
    ),
    failingCaches: gauge(
      'curtail_kube_failing_caches',
      "The controller's caches of Kubernetes objects whose last list or watch failed.",
      ['resource'],
    ),
    watchLists: counter('curtail_kube_lists_total', 'Lists that were read completely.', [
      'resource',
    ]),
    watchedObjects: gauge('curtail_kube_watched_objects', "Objects in the controller's caches.", [
      'resource',
    ]),
    eventsDropped: counter(
      'curtail_kube_events_dropped_total',
      'Events that were not written, by reason.',
      ['reason'],
    ),
    poolConditions: gauge(
      'curtail_codepool_conditions',
      'CodePools by condition, its status and its reason.',
      ['type', 'status', 'reason'],
    ),
    refillJobs: counter('curtail_refill_jobs_total', 'Refill Jobs, by result.', ['result']),
    poolReadsFailed: counter(
      'curtail_controller_pool_reads_failed_total',
      'Reads of the pool levels that the store did not respond to.',
    ),
    adsFaults: counter(
      'curtail_ads_faults_total',
      'Rejected connections and calls of limiters, and versions that they rejected, by reason.',
      ['reason'],
    ),
  }
}

function policyMetrics({ gauge }: MetricFactory) {
  return {
    policyConditions: gauge(
      'curtail_ratelimitpolicy_conditions',
      'RateLimitPolicies by condition, its status and its reason.',
      ['type', 'status', 'reason'],
    ),
    policyLimiters: gauge(
      'curtail_controller_limiters',
      'Limiters of the leader by state: current or outdated rules, or missing (disconnected).',
      ['state'],
    ),
  }
}
