// The alerts and their thresholds. Each alert has a runbook of the same name in docs/runbooks/.
import { stringify } from 'yaml'
import type { Alert } from './alert.ts'
import { burnAlerts, burnRecords, RELEASE, released } from './burn-rates.ts'

const { ours, edge, other } = released
const CODES_PER_BLOCK = 1000
/** Hours that the pool must last at the claim rate of the last hour. */
const POOL_HOURS_MIN = 6

const poolAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailPoolEmpty', severity: 'critical', forSpan: '1m' },
    expr: `max by (pool) (${ours('poolLevel')}) == 0`,
    summary: 'The pool {{ $labels.pool }} is empty: creates without an alias fail',
  },
  {
    ...{ alert: 'CurtailPoolRunningOut', severity: 'critical', forSpan: '5m' },
    expr:
      `max by (pool) (${ours('poolLevel')}) < ` +
      `${POOL_HOURS_MIN * CODES_PER_BLOCK} * max by (pool) (delta(${ours('poolClaimed')}[1h]))`,
    summary:
      'The pool {{ $labels.pool }} has {{ $value }} codes, ' +
      `fewer than ${POOL_HOURS_MIN} hours at the rate of the last one use`,
  },
  {
    ...{ alert: 'CurtailRefillFailing', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(increase(${ours('refillJobs', { result: 'failed' })}[30m])) > 0 unless ` +
      `sum(increase(${ours('refillJobs', { result: 'succeeded' })}[30m])) > 0`,
    summary: 'Refill Jobs fail, and none succeeded in half an hour',
  },
  {
    ...{ alert: 'CurtailPoolDegraded', severity: 'warning', forSpan: '15m' },
    expr: `max by (reason) (${ours('poolConditions', { type: 'Degraded', status: 'True' })}) > 0`,
    summary: '{{ $value }} CodePools are degraded: {{ $labels.reason }}',
  },
]

const failedCalls = `sum(rate(${edge('limiterErrors')}[5m]))`
const allCalls =
  `(${failedCalls} + sum(rate(${edge('limiterOk')}[5m])) + ` +
  `(sum(rate(${edge('limiterOver')}[5m])) or vector(0)))`

const limiterAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailLimiterUnavailable', severity: 'critical', forSpan: '5m' },
    expr: `${failedCalls} / ${allCalls} > 0.05`,
    summary:
      'The limiter does not respond to {{ $value | humanizePercentage }} of the edge’s calls, ' +
      'so that the edge applies its local limits',
  },
  {
    ...{ alert: 'CurtailLimiterFallback', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('limiterStoreUnavailable')}) > 0`,
    summary: '{{ $value }} limiters count locally, because their Redis is unavailable',
  },
  {
    ...{ alert: 'CurtailRulesRejected', severity: 'warning', forSpan: '0s' },
    expr: `sum(increase(${ours('configLoadError')}[15m])) > 0`,
    summary: 'A set of rate-limit rules was rejected; the previous one stays active',
  },
  {
    ...{ alert: 'CurtailDomainWithoutRules', severity: 'critical', forSpan: '1m' },
    expr: `sum by (domain) (rate(${ours('domainNotFound')}[5m])) > 0`,
    summary:
      'The limiter has no rule of the domain {{ $labels.domain }}, so it admits every request',
  },
]

const degradedLookups = { tier: '~stale|replica', result: 'hit' }
const statements = (matchers = {}) => ours('cassandraCallSeconds', matchers, '_count')
const failedStatements = statements({ result: '~unknown|not-done|defect' })

const storeAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailStoreUnavailable', severity: 'critical', forSpan: '2m' },
    expr:
      `max by (pod) (${ours('cassandraMajority')}) == 0 ` +
      `and on (pod) ${ours('buildInfo', { role: '~create|redirect' })}`,
    summary: 'No majority of Cassandra replicas responds to {{ $labels.pod }}',
  },
  {
    ...{ alert: 'CurtailStoreDegraded', severity: 'warning', forSpan: '10m' },
    expr: `sum(rate(${failedStatements}[5m])) / sum(rate(${statements()}[5m])) > 0.01`,
    summary: '{{ $value | humanizePercentage }} of Cassandra statements fail',
  },
  {
    ...{ alert: 'CurtailStaleRedirects', severity: 'warning', forSpan: '5m' },
    expr: `sum(rate(${ours('lookups', degradedLookups)}[5m])) > 0`,
    summary: 'Redirects are served without a majority of the store, or from memory only',
  },
  {
    ...{ alert: 'CurtailCacheUnavailable', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('linkCacheUnavailable')}) > 0`,
    summary: '{{ $value }} pods work without the shared link cache; Cassandra serves all reads',
  },
  {
    ...{ alert: 'CurtailCacheInvalidationStuck', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(${ours('linkCacheInvalidationsQueued')}) > 0 or ` +
      `sum(increase(${ours('linkCacheInvalidationsDropped')}[15m])) > 0`,
    summary: 'The shared cache may have stale entries of {{ $value }} changed links',
  },
]

const edgeAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailNoHealthyPods', severity: 'critical', forSpan: '1m' },
    expr:
      'min by (envoy_cluster_name) ' +
      `(${edge('healthyPods', { envoy_cluster_name: '~redirect|create|ratelimit' })}) == 0`,
    summary: 'An edge has no healthy pod of {{ $labels.envoy_cluster_name }}',
  },
  {
    ...{ alert: 'CurtailEdgeOverloaded', severity: 'critical', forSpan: '1m' },
    expr: `max by (pod) (${edge('rejectedRequests')}) > 0`,
    summary: '{{ $labels.pod }} rejects requests, because its memory is exhausted',
  },
  {
    ...{ alert: 'CurtailCertificateExpiring', severity: 'warning', forSpan: '1h' },
    expr: `min(${edge('certificateDays')}) < 14`,
    summary: 'The certificate of the edge expires in {{ $value }} days',
  },
]

const leading = ours('isLeader')

const processAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailControllerWithoutLeader', severity: 'warning', forSpan: '5m' },
    expr: `sum(max_over_time(${leading}[6h])) > 0 unless sum(${leading}) > 0`,
    summary: 'No controller leads: pools are not refilled',
  },
  {
    ...{ alert: 'CurtailReconcileErrors', severity: 'warning', forSpan: '15m' },
    expr: `sum by (controller) (rate(${ours('reconcileErrors')}[10m])) > 0`,
    summary: 'Reconciles of the controller {{ $labels.controller }} fail repeatedly',
  },
  {
    ...{ alert: 'CurtailEventLoopSlow', severity: 'warning', forSpan: '10m' },
    expr:
      'histogram_quantile(0.99, sum by (pod, le) ' +
      `(rate(${ours('loopLagSeconds', {}, '_bucket')}[5m]))) > 0.1`,
    summary:
      '{{ $labels.pod }} is overloaded: ' +
      'the lag of its event loop is {{ $value | humanizeDuration }} (p99)',
  },
  {
    ...{ alert: 'CurtailPodNotScraped', severity: 'warning', forSpan: '5m' },
    expr: `${other('up')} == 0`,
    summary: '{{ $labels.pod }} is not scraped: no metrics',
  },
]

/** All alerts. */
export const alerts: readonly Alert[] = [
  ...burnAlerts(),
  ...poolAlerts,
  ...limiterAlerts,
  ...storeAlerts,
  ...edgeAlerts,
  ...processAlerts,
]

const HEADER = `# Rendered by charts/dashboards/alerts.ts (npm run render); do not edit. The chart
# replaces NAMESPACE and RELEASE by the release, and RUNBOOKS/ by the address of the runbooks.
`

/** Renders Prometheus's rules file. Tests pass `divide` to divide all durations. */
export function renderRules({ divide = 1 } = {}): string {
  const release = { release: RELEASE }
  const shorter = (expr: string) =>
    expr.replace(/\[(\w+)\]/g, (_, span: string) => `[${divideSpan(span, divide)}]`)
  const recording = burnRecords().map(({ record, expr }) => {
    return { record, expr: shorter(expr), labels: release }
  })
  const alerting = alerts.map(({ alert, severity, forSpan, expr, summary }) => ({
    alert,
    expr: shorter(expr),
    for: divideSpan(forSpan, divide),
    labels: { severity, ...release },
    annotations: { summary, runbook_url: `RUNBOOKS/${alert.toLowerCase()}` },
  }))
  const groups = [
    { name: `${RELEASE}-burn-rates`, rules: recording },
    { name: `${RELEASE}-alerts`, rules: alerting },
  ]
  return HEADER + stringify({ groups }, { lineWidth: 0, aliasDuplicateObjects: false })
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

function divideSpan(span: string, divide: number): string {
  if (divide === 1) return span
  const [, count, unit = 's'] = /^(\d+)([smhd])$/.exec(span) ?? []
  return `${Math.ceil((Number(count) * (SECONDS[unit] ?? 1)) / divide)}s`
}
