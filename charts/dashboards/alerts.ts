// The alerts: each one asks a person to do something that docs/runbooks/ says under its name.
// Thresholds are decided here; nothing is sent.
import { stringify } from 'yaml'
import type { Alert } from './alert.ts'
import { burnAlerts, burnRecords, RELEASE, released } from './burn-rates.ts'

const { ours, edge, other } = released
const CODES_OF_BLOCK = 1000
/** Hours for which the pool must last at the last hour's use. */
const POOL_HOURS_MIN = 6

const poolAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailPoolEmpty', severity: 'critical', forSpan: '1m' },
    expr: `max by (pool) (${ours('poolLevel')}) == 0`,
    summary: 'The pool {{ $labels.pool }} holds no code: creates fail, but for own aliases',
  },
  {
    ...{ alert: 'CurtailPoolRunningOut', severity: 'critical', forSpan: '5m' },
    expr:
      `max by (pool) (${ours('poolLevel')}) < ` +
      `${POOL_HOURS_MIN * CODES_OF_BLOCK} * max by (pool) (delta(${ours('poolClaimed')}[1h]))`,
    summary:
      'The pool {{ $labels.pool }} holds {{ $value }} codes, ' +
      `fewer than ${POOL_HOURS_MIN} hours like the last one take`,
  },
  {
    ...{ alert: 'CurtailRefillFailing', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(increase(${ours('refillJobs', { outcome: 'failed' })}[30m])) > 0 unless ` +
      `sum(increase(${ours('refillJobs', { outcome: 'succeeded' })}[30m])) > 0`,
    summary: 'Refill Jobs fail, and none succeeded in half an hour',
  },
  {
    ...{ alert: 'CurtailPoolDegraded', severity: 'warning', forSpan: '15m' },
    expr:
      'max by (reason) ' + `(${ours('poolConditions', { type: 'Degraded', status: 'True' })}) > 0`,
    summary: '{{ $value }} CodePools are degraded: {{ $labels.reason }}',
  },
]

const silent = `sum(rate(${edge('limiterSilent')}[5m]))`
const asked =
  `(${silent} + sum(rate(${edge('limiterOk')}[5m])) + ` +
  `(sum(rate(${edge('limiterOver')}[5m])) or vector(0)))`

const limiterAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailLimiterSilent', severity: 'critical', forSpan: '5m' },
    expr: `${silent} / ${asked} > 0.05`,
    summary:
      'The limiter does not answer {{ $value | humanizePercentage }} of the calls of the edge, ' +
      'which limits clients by itself',
  },
  {
    ...{ alert: 'CurtailLimiterFallback', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('limiterStoreAway')}) > 0`,
    summary: '{{ $value }} processes count limits alone, as their Redis does not answer',
  },
  {
    ...{ alert: 'CurtailRulesRefused', severity: 'warning', forSpan: '0s' },
    expr: `sum(increase(${ours('configLoadError')}[15m])) > 0`,
    summary: 'A set of rate-limit rules was refused; the one before is in force',
  },
  {
    ...{ alert: 'CurtailDomainWithoutRules', severity: 'critical', forSpan: '1m' },
    expr: `sum by (domain) (rate(${ours('domainNotFound')}[5m])) > 0`,
    summary:
      'The limiter has no rule of the domain {{ $labels.domain }}, so it admits every request',
  },
]

const doubtful = { tier: '~stale|replica', outcome: 'hit' }
const calls = (matchers = {}) => ours('cassandraCallSeconds', matchers, '_count')
const lost = calls({ outcome: '~unknown|not-done|defect' })

const storeAlerts: readonly Alert[] = [
  {
    ...{ alert: 'CurtailStoreAway', severity: 'critical', forSpan: '2m' },
    expr:
      `max by (pod) (${ours('cassandraMajority')}) == 0 ` +
      `and on (pod) ${ours('buildInfo', { role: '~create|redirect' })}`,
    summary: '{{ $labels.pod }} reaches no majority of Cassandra',
  },
  {
    ...{ alert: 'CurtailStoreDegraded', severity: 'warning', forSpan: '10m' },
    expr: `sum(rate(${lost}[5m])) / sum(rate(${calls()}[5m])) > 0.01`,
    summary: '{{ $value | humanizePercentage }} of the statements of Cassandra fail',
  },
  {
    ...{ alert: 'CurtailStaleAnswers', severity: 'warning', forSpan: '5m' },
    expr: `sum(rate(${ours('lookups', doubtful)}[5m])) > 0`,
    summary: 'Links are served without a majority of the store, or from memory alone',
  },
  {
    ...{ alert: 'CurtailCacheAway', severity: 'warning', forSpan: '5m' },
    expr: `sum(${ours('linkCacheAway')}) > 0`,
    summary: '{{ $value }} pods do without the shared cache of links; Cassandra has all reads',
  },
  {
    ...{ alert: 'CurtailForgetsStuck', severity: 'warning', forSpan: '5m' },
    expr:
      `sum(${ours('linkForgetsQueued')}) > 0 or ` +
      `sum(increase(${ours('linkForgetsDropped')}[15m])) > 0`,
    summary: 'The cache may hold {{ $value }} changed links as they were',
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
    expr: `max by (pod) (${edge('refusedRequests')}) > 0`,
    summary: '{{ $labels.pod }} refuses requests, as its memory is used up',
  },
  {
    ...{ alert: 'CurtailCertificateExpires', severity: 'warning', forSpan: '1h' },
    expr: `min(${edge('daysOfCertificate')}) < 14`,
    summary: 'The certificate of the edge ends in {{ $value }} days',
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
    summary: 'The controller {{ $labels.controller }} fails again and again',
  },
  {
    ...{ alert: 'CurtailEventLoopSlow', severity: 'warning', forSpan: '10m' },
    expr:
      'histogram_quantile(0.99, sum by (pod, le) ' +
      `(rate(${ours('loopLagSeconds', {}, '_bucket')}[5m]))) > 0.1`,
    summary:
      '{{ $labels.pod }} is too busy: ' +
      'its event loop is {{ $value | humanizeDuration }} late (p99)',
  },
  {
    ...{ alert: 'CurtailPodNotScraped', severity: 'warning', forSpan: '5m' },
    expr: `${other('up')} == 0`,
    summary: '{{ $labels.pod }} gives no metrics',
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

const HEADER = `# Made by charts/dashboards/alerts.ts (npm run render); do not edit. The chart puts the
# release in the place of NAMESPACE and RELEASE, and the runbooks' address in that of RUNBOOKS/.
`

/** The rules file of Prometheus. With `divide` all its times are so much shorter: for tests. */
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
