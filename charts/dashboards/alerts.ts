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
      `which will last for less than ${POOL_HOURS_MIN} hours at the claim rate of the last hour`,
  },
  {
    ...{ alert: 'CurtailRefillFailing', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(increase(${ours('refillJobs', { result: 'failed' })}[30m])) > 0 unless ` +
      `sum(increase(${ours('refillJobs', { result: 'succeeded' })}[30m])) > 0`,
    summary: 'Refill Jobs fail, and none has succeeded for half an hour',
  },
  {
    ...{ alert: 'CurtailPoolDegraded', severity: 'warning', forSpan: '15m' },
    expr: `max by (reason) (${ours('poolConditions', { type: 'Degraded', status: 'True' })}) > 0`,
    summary: 'Degraded CodePools with the reason {{ $labels.reason }}: {{ $value }}',
  },
]

const failedCalls = `sum(rate(${edge('limiterErrors')}[5m]))`
const allCalls =
  `(${failedCalls} + sum(rate(${edge('limiterOk')}[5m])) + ` +
  `(sum(rate(${edge('limiterOver')}[5m])) or vector(0)))`

const notProgrammed = {
  ...{ type: 'Programmed', status: 'False' },
  reason: '~Pending|NoLimiters|Rejected',
}

const limiterAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailLimiterUnavailable', severity: 'critical', forSpan: '5m' },
    expr: `${failedCalls} / ${allCalls} > 0.05`,
    summary:
      'The limiter fails or times out for {{ $value | humanizePercentage }} of the edge’s calls: ' +
      'the edge applies its local limits, or rejects requests if edge.failClosed is true',
  },
  {
    ...{ alert: 'CurtailLimiterFallback', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('limiterStoreUnavailable')}) > 0`,
    summary: 'Limiter pods that count locally because their Redis is unavailable: {{ $value }}',
  },
  {
    ...{ alert: 'CurtailRulesRejected', severity: 'warning', forSpan: '0s' },
    expr: `sum(increase(${ours('configLoadError')}[15m])) > 0`,
    summary: 'The limiter rejected changed rate-limit rules: the previous rules stay active',
  },
  {
    ...{ alert: 'CurtailLimiterWithoutRules', severity: 'critical', forSpan: '1m' },
    expr:
      `max by (pod) (${ours('limiterDomains')}) == 0 ` +
      `and on (pod) ${ours('buildInfo', { role: 'ratelimit' })}`,
    summary: '{{ $labels.pod }} has no rate-limit rules: it is not ready, or admits all requests',
  },
  {
    ...{ alert: 'CurtailDomainWithoutRules', severity: 'critical', forSpan: '1m' },
    expr: `sum by (domain) (rate(${ours('domainNotFound')}[5m])) > 0`,
    summary:
      'The limiter has no rules for the domain {{ $labels.domain }}: it admits all requests for it',
  },
  {
    // A limiter that disconnects counts for 90 s, so a rollout must not fire this.
    ...{ alert: 'CurtailPoliciesNotProgrammed', severity: 'warning', forSpan: '3m' },
    expr: `max by (reason) (${ours('policyConditions', notProgrammed)}) > 0`,
    summary: 'RateLimitPolicies that not all limiters apply: {{ $value }} ({{ $labels.reason }})',
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
    summary: 'Redirects are served by a single Cassandra replica, or only from the memory of pods',
  },
  {
    ...{ alert: 'CurtailCacheUnavailable', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('linkCacheUnavailable')}) > 0`,
    summary:
      'Pods that cannot use the shared link cache: {{ $value }}; they read Cassandra instead',
  },
  {
    ...{ alert: 'CurtailCacheInvalidationStuck', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(${ours('linkCacheInvalidationsQueued')}) > 0 or ` +
      `sum(increase(${ours('linkCacheInvalidationsDropped')}[15m])) > 0`,
    summary: 'The shared link cache may contain stale entries for {{ $value }} changed links',
  },
]

const edgeAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailNoHealthyPods', severity: 'critical', forSpan: '1m' },
    expr:
      'min by (envoy_cluster_name) ' +
      `(${edge('healthyPods', { envoy_cluster_name: '~redirect|create|ratelimit' })}) == 0`,
    summary: 'An edge pod has no healthy pod of the service {{ $labels.envoy_cluster_name }}',
  },
  {
    ...{ alert: 'CurtailEdgeOverloaded', severity: 'critical', forSpan: '1m' },
    expr: `max by (pod) (${edge('rejectedRequests')}) > 0`,
    summary: '{{ $labels.pod }} rejects requests because its heap is almost full',
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
    summary: 'No controller replica is the leader: pools are not refilled',
  },
  {
    ...{ alert: 'CurtailWatchFailing', severity: 'warning', forSpan: '5m' },
    expr: `max by (resource) (${ours('failingCaches')}) > 0`,
    summary:
      'The controller cannot watch {{ $labels.resource }} (watches: {{ $value }}): ' +
      'it does not apply their changes',
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
      'its event-loop lag is {{ $value | humanizeDuration }} (p99)',
  },
  {
    ...{ alert: 'CurtailPodNotScraped', severity: 'warning', forSpan: '5m' },
    expr: `${other('up')} == 0`,
    summary: 'Prometheus cannot scrape {{ $labels.pod }}',
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
