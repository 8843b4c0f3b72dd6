// The metrics of the link cache that the pods share.
import type { MetricFactory } from './metric-factory.ts'

/** Creates the metrics. */
export function linkCacheMetrics({ counter, gauge }: MetricFactory) {
  return {
    linkCacheFills: counter(
      'curtail_link_cache_fills_total',
      'Attempts to write an entry to the shared link cache, by result.',
      ['result'],
    ),
    linkCacheFailures: counter(
      'curtail_link_cache_failures_total',
      'Commands of the shared link cache that failed or timed out, by reason.',
      ['reason'],
    ),
    linkCacheUnavailable: gauge(
      'curtail_link_cache_unavailable',
      '1 while the circuit breaker of the shared link cache is open.',
    ),
    linkCacheInvalidEntries: counter(
      'curtail_link_cache_invalid_entries_total',
      'Entries of the shared link cache that failed verification and were dropped, by reason.',
      ['reason'],
    ),
    linkCacheInvalidationsQueued: gauge(
      'curtail_link_cache_invalidations_queued',
      'Invalidations of links that the shared cache has not confirmed yet.',
    ),
    linkCacheInvalidationsDropped: counter(
      'curtail_link_cache_invalidations_dropped_total',
      'Invalidations of links that were dropped because too many were queued.',
    ),
  }
}
