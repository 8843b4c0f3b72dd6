// The alerts and their thresholds. Each alert has a runbook of the same name in docs/runbooks/.
import { stringify } from 'yaml'
import type { Alert } from './alert.ts'
import { burnAlerts, burnRecords, NAMESPACE, RELEASE, releaseSeries } from './burn-rates.ts'
import { listAlerts } from './list-alerts.ts'

const { ours, edge, other } = releaseSeries
const CODES_PER_BLOCK = 1000
/** Hours that the pool must last at the claim rate of the last hour. */
const POOL_HOURS_MIN = 6
/** Template of Prometheus that renders an alert's value as a whole number. */
const COUNT = '{{ $value | printf "%.0f" }}'

const poolAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailPoolEmpty', severity: 'critical', forSpan: '1m' },
    expr: `max by (pool) (${ours('poolLevel')}) == 0`,
    summary:
      'The pool {{ $labels.pool }} has no codes left: ' +
      'requests for new links without an alias get 503',
  },
  {
    ...{ alert: 'CurtailPoolRunningOut', severity: 'critical', forSpan: '5m' },
    expr:
      `max by (pool) (${ours('poolLevel')}) < ` +
      `${POOL_HOURS_MIN * CODES_PER_BLOCK} * max by (pool) (delta(${ours('poolClaimed')}[1h]))`,
    summary:
      `The pool {{ $labels.pool }} has ${COUNT} codes left, which will last for less than ` +
      `${POOL_HOURS_MIN} hours at the rate of the last hour; ` +
      'after that, requests for new links without an alias get 503',
  },
  {
    ...{ alert: 'CurtailRefillFailing', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(increase(${ours('refillJobs', { result: 'failed' })}[30m])) > 0 unless ` +
      `sum(increase(${ours('refillJobs', { result: 'succeeded' })}[30m])) > 0`,
    summary:
      `In the last 30 minutes, ${COUNT} refill Jobs failed and none succeeded: ` +
      'when the pools are empty, requests for new links without an alias get 503',
  },
  {
    ...{ alert: 'CurtailPoolDegraded', severity: 'warning', forSpan: '15m' },
    expr: `max by (reason) (${ours('poolConditions', { type: 'Degraded', status: 'True' })}) > 0`,
    summary:
      'Number of degraded CodePools: {{ $value }} (reason {{ $labels.reason }}). ' +
      'Their pools might no longer be refilled; when a pool is empty, ' +
      'requests for new links without an alias get 503',
  },
]

// Envoy exports each of these counters only after its first increment.
const failedCalls = `sum(rate(${edge('limiterErrors')}[5m]))`
const allCalls =
  `(${failedCalls} + (sum(rate(${edge('limiterOk')}[5m])) or vector(0)) + ` +
  `(sum(rate(${edge('limiterOver')}[5m])) or vector(0)))`

const notProgrammed = {
  ...{ type: 'Programmed', status: 'False' },
  reason: '~Pending|NoLimiters|Rejected',
}
/** The number of limiters without a connection, if there are policies: rule files need none. */
const disconnected =
  `count(max by (pod) (${ours('xdsConnected')}) == 0 ` +
  `and on (pod) ${ours('buildInfo', { role: 'ratelimit' })}) ` +
  `and on () sum(${ours('policyConditions')}) > 0`

const limiterAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailLimiterUnavailable', severity: 'critical', forSpan: '5m' },
    expr: `${failedCalls} / ${allCalls} > 0.05`,
    summary:
      "{{ $value | humanizePercentage }} of the edge's calls to the limiter fail or time out: " +
      'the edge applies its local limits, or responds with 503 if edge.failClosed is true',
  },
  {
    ...{ alert: 'CurtailLimiterFallback', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('limiterStoreUnavailable')}) > 0`,
    summary:
      '{{ $value }} of the limiter pods cannot use the Redis with the counters: ' +
      'rate limits are enforced only approximately',
  },
  {
    ...{ alert: 'CurtailRulesRejected', severity: 'warning', forSpan: '0s' },
    expr: `sum(increase(${ours('configLoadError')}[15m])) > 0`,
    summary:
      `Changed rate-limit rules were rejected ${COUNT} times in the last 15 minutes: ` +
      'the previous rules stay active, and the change has no effect',
  },
  {
    ...{ alert: 'CurtailLimiterWithoutRules', severity: 'critical', forSpan: '1m' },
    expr:
      `max by (pod) (${ours('limiterDomains')}) == 0 ` +
      `and on (pod) ${ours('buildInfo', { role: 'ratelimit' })}`,
    summary:
      'The limiter pod {{ $labels.pod }} has received no valid rate-limit rules: ' +
      'it is not ready, and the edge does not call it',
  },
  {
    ...{ alert: 'CurtailDomainWithoutRules', severity: 'critical', forSpan: '1m' },
    expr: `sum by (domain) (increase(${ours('domainNotFound')}[5m])) > 0`,
    summary:
      'The limiter has no rules for the domain {{ $labels.domain }}: ' +
      `in the last 5 minutes, ${COUNT} requests were admitted without a limit`,
  },
  {
    // The controller still counts a limiter for 90 s after it disconnects; forSpan is longer, so
    // that a rollout does not fire this alert. Afterwards only the limiter itself reports that it
    // is disconnected.
    ...{ alert: 'CurtailPoliciesNotProgrammed', severity: 'warning', forSpan: '2m' },
    expr:
      `max by (reason) (${ours('policyConditions', notProgrammed)}) > 0 ` +
      `or label_replace(${disconnected}, "reason", "Disconnected", "", "")`,
    summary:
      'Some limiters do not apply the current RateLimitPolicies, and enforce the previous ' +
      'limits (reason {{ $labels.reason }}; number of affected ' +
      '{{ if eq $labels.reason "Disconnected" }}limiters{{ else }}policies{{ end }}: ' +
      '{{ $value }})',
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
    summary:
      "The pod {{ $labels.pod }} cannot reach a majority of Cassandra's replicas. A create pod " +
      'responds to all creates with 503; a redirect pod responds with 503 only for links that ' +
      'are neither in the cache, nor on a reachable replica, nor in its memory',
  },
  {
    ...{ alert: 'CurtailStoreDegraded', severity: 'warning', forSpan: '10m' },
    expr: `sum(rate(${failedStatements}[5m])) / sum(rate(${statements()}[5m])) > 0.01`,
    summary:
      '{{ $value | humanizePercentage }} of Cassandra statements fail: ' +
      'some requests for new links get 503, and some redirects are slow',
  },
  {
    ...{ alert: 'CurtailStaleRedirects', severity: 'warning', forSpan: '5m' },
    expr: `sum(increase(${ours('lookups', degradedLookups)}[5m])) > 0`,
    summary:
      `In the last 5 minutes, ${COUNT} redirects used a single Cassandra replica or the memory ` +
      'of a pod: links that were recently disabled or deleted may still redirect',
  },
  {
    ...{ alert: 'CurtailCacheUnavailable', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('linkCacheUnavailable')}) > 0`,
    summary:
      '{{ $value }} of the pods cannot use the shared link cache (Redis): ' +
      'redirects continue, but increase the load on Cassandra; commands that disable a link fail',
  },
  {
    ...{ alert: 'CurtailCacheInvalidationStuck', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(${ours('linkCacheInvalidationsQueued')}) > 0 or ` +
      `sum(increase(${ours('linkCacheInvalidationsDropped')}[15m])) > 0`,
    summary:
      `The shared link cache (Redis) may contain outdated entries for ${COUNT} links: ` +
      'links that were disabled or deleted may still redirect',
  },
]

const edgeAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailNoHealthyPods', severity: 'critical', forSpan: '1m' },
    expr:
      'min by (envoy_cluster_name) ' +
      `(${edge('healthyPods', { envoy_cluster_name: '~redirect|create|ratelimit' })}) == 0`,
    summary:
      'At least one edge pod finds no healthy {{ $labels.envoy_cluster_name }} pod. Without ' +
      'redirect or create pods, it responds with 503; without ratelimit pods, it applies its ' +
      'local limits, or responds with 503 if edge.failClosed is true',
  },
  {
    ...{ alert: 'CurtailEdgeOverloaded', severity: 'critical', forSpan: '1m' },
    expr: `max by (pod) (${edge('rejectedRequests')}) > 0`,
    summary:
      'The edge pod {{ $labels.pod }} uses at least 95 % of its maximum heap, ' +
      'and responds to requests with 503',
  },
  {
    ...{ alert: 'CurtailCertificateExpiring', severity: 'warning', forSpan: '1h' },
    expr: `min(${edge('certificateDays')}) < 14`,
    summary:
      'The certificate of the edge expires in {{ $value }} days. After that, ' +
      'HTTPS clients cannot connect',
  },
]

const leading = ours('isLeader')

const processAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailControllerWithoutLeader', severity: 'warning', forSpan: '5m' },
    // Without a scraped controller pod, the alert fires for only six hours: the release may have
    // no controller now.
    expr:
      `sum(${leading}) == 0 or ` +
      `sum(max_over_time(${leading}[6h])) > 0 unless sum(${leading}) > 0`,
    summary:
      'No controller pod is the leader: changed rate limits have no effect, and pools are not ' +
      'refilled; when they are empty, requests for new links without an alias get 503',
  },
  {
    ...{ alert: 'CurtailWatchFailing', severity: 'warning', forSpan: '5m' },
    expr: `max by (resource) (${ours('failingCaches')}) > 0`,
    summary:
      'The controller cannot read {{ $labels.resource }} (failing watches: {{ $value }}): ' +
      'changes to these objects have no effect, or take effect after a delay',
  },
  {
    ...{ alert: 'CurtailReconcileErrors', severity: 'warning', forSpan: '15m' },
    expr: `sum by (controller) (increase(${ours('reconcileErrors')}[10m])) > 0`,
    summary:
      'In the last 10 minutes, the controller {{ $labels.controller }} failed to reconcile ' +
      `objects ${COUNT} times: pools might run empty (codepool), statuses of RateLimitPolicies ` +
      'might be outdated (ratelimitpolicy), or the stored fallback version of the rules might be ' +
      '(ratelimitpolicy-version)',
  },
  {
    ...{ alert: 'CurtailEventLoopSlow', severity: 'warning', forSpan: '10m' },
    expr:
      'histogram_quantile(0.99, sum by (pod, le) ' +
      `(rate(${ours('loopLagSeconds', {}, '_bucket')}[5m]))) > 0.1`,
    summary:
      'The pod {{ $labels.pod }} responds slowly: ' +
      'its event-loop lag is {{ $value | humanizeDuration }} (p99)',
  },
  {
    ...{ alert: 'CurtailPodNotScraped', severity: 'warning', forSpan: '5m' },
    expr: `${other('up')} == 0`,
    summary:
      'Prometheus cannot scrape the pod {{ $labels.pod }}: ' +
      'the pod may be down, and the other alerts do not cover it',
  },
]

/** All alerts. */
export const alerts: readonly Alert[] = [
  ...burnAlerts(),
  ...poolAlerts,
  ...limiterAlerts,
  ...listAlerts,
  ...storeAlerts,
  ...edgeAlerts,
  ...processAlerts,
]

const HEADER = `# Rendered by charts/dashboards/alerts.ts (npm run render); do not edit. The chart
# replaces NAMESPACE with the namespace of the release, RELEASE with its full name, and RUNBOOKS/
# with the address of the runbooks.
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
    annotations: annotationsOf(alert, summary),
  }))
  const groups = [
    { name: `${RELEASE}-burn-rates`, rules: recording },
    { name: `${RELEASE}-alerts`, rules: alerting },
  ]
  return HEADER + stringify({ groups }, { lineWidth: 0, aliasDuplicateObjects: false })
}

/** The release precedes the summary, and the description names the runbook without its URL. */
function annotationsOf(alert: string, summary: string) {
  const page = alert.toLowerCase()
  return {
    summary: `${NAMESPACE}/${RELEASE}: ${summary}`,
    description: `Runbook: docs/runbooks/${page}.md`,
    runbook_url: `RUNBOOKS/${page}`,
  }
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

function divideSpan(span: string, divide: number): string {
  if (divide === 1) return span
  const [, count, unit = 's'] = /^(\d+)([smhd])$/.exec(span) ?? []
  return `${Math.ceil((Number(count) * (SECONDS[unit] ?? 1)) / divide)}s`
}
