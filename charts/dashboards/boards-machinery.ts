// Dashboards of the components: limiter, edge, and the dependencies.
import { type Board, chosen, line, quantile, rateBy, times } from './panel.ts'

const { ours, edge } = chosen
const BY_CLUSTER = '{{envoy_cluster_name}}'

function rateOfRules(metric: 'ruleOverLimit' | 'ruleShadowMode'): string {
  return `sum by (rule) (rate(${ours(metric)}[$__rate_interval]))`
}

/** The rate limiter. */
export const limiter: Board = {
  name: 'limiter',
  title: 'Curtail / Limiter',
  rows: [
    {
      title: 'Decisions',
      panels: [
        {
          title: 'Decisions by source',
          description:
            'store: by Redis. deny-cache: denied from memory, because the limit is already ' +
            'exceeded. fallback: without a response from Redis.',
          unit: 'ops',
          queries: [rateBy(ours('limiterDecisions'), ['source', 'result'])],
        },
        {
          title: 'Denied by rule',
          description: 'Hits that exceed a limit, except those of rules in shadow mode.',
          unit: 'ops',
          queries: [
            line(
              `${rateOfRules('ruleOverLimit')} - ${rateOfRules('ruleShadowMode')} or vector(0)`,
              '{{rule}}',
            ),
          ],
        },
        {
          title: 'Not denied in shadow mode, by rule',
          description: 'Hits that exceed a limit in shadow mode (policies with mode: Audit).',
          unit: 'ops',
          queries: [rateBy(ours('ruleShadowMode'), ['rule'])],
        },
        {
          title: 'Requested hits',
          description: 'All hits that calls contain, by rule.',
          unit: 'ops',
          queries: [rateBy(ours('ruleTotalHits'), ['rule'])],
        },
      ],
    },
    {
      title: 'Health',
      panels: [
        {
          title: 'Duration of calls',
          description:
            'After 20 ms, the edge stops waiting for a response, and applies its local limits.',
          unit: 's',
          queries: times('limiterCallSeconds'),
        },
        {
          title: 'Calls from the edge',
          description: 'no response: the call timed out or failed, or no limiter was available.',
          unit: 'ops',
          queries: [
            { ...rateBy(edge('limiterOk')), legend: 'admitted' },
            { ...rateBy(edge('limiterOver')), legend: 'denied' },
            { ...rateBy(edge('limiterErrors')), legend: 'no response' },
          ],
        },
        {
          title: 'Failed calls to Redis',
          description:
            'Failed calls by reason, and the number of limiter pods that decide without Redis.',
          unit: 'short',
          queries: [
            rateBy(ours('limiterStoreFailures'), ['reason']),
            line(`sum(${ours('limiterStoreUnavailable')})`, 'pods without Redis'),
          ],
        },
        {
          title: 'Rule reloads',
          description:
            'Versions of the rules that limiters have loaded or rejected since they started.',
          unit: 'short',
          queries: [
            line(`sum(${ours('configLoadSuccess')})`, 'loaded'),
            line(`sum(${ours('configLoadError')})`, 'rejected'),
          ],
        },
      ],
    },
  ],
}

/** The edge: Envoy. */
export const edgeBoard: Board = {
  name: 'edge',
  title: 'Curtail / Edge',
  rows: [
    {
      title: 'Clients',
      panels: [
        {
          title: 'Duration of requests',
          description: 'From the first byte of a request to the last byte of its response.',
          unit: 'ms',
          queries: [0.5, 0.99].map((ratio) =>
            quantile(
              ratio,
              edge('clientMs', { envoy_http_conn_manager_prefix: 'edge' }, '_bucket'),
            ),
          ),
        },
        {
          title: 'Connections',
          description: 'Open client connections, by edge pod.',
          unit: 'short',
          queries: [
            line(edge('connections', { envoy_http_conn_manager_prefix: 'edge' }), '{{pod}}'),
          ],
        },
        {
          title: 'Denied by local limits',
          description:
            'local_fallback applies while the limiter is unavailable. The others always apply.',
          unit: 'reqps',
          queries: [rateBy(edge('localDenied'), ['envoy_local_http_ratelimit_prefix'])],
        },
        {
          title: 'Calls to the limiter for redirects',
          description:
            'Redirects within the allowance cause no call. Calls after a 404 response are not ' +
            'included. no response: the edge applies its local limit.',
          unit: 'reqps',
          queries: [
            {
              ...rateBy(edge('localAdmitted', { envoy_local_http_ratelimit_prefix: 'allowance' })),
              legend: 'within the allowance',
            },
            {
              ...rateBy(edge('limiterOk', { envoy_cluster_name: 'redirect' })),
              legend: 'admitted',
            },
            {
              ...rateBy(edge('limiterOver', { envoy_cluster_name: 'redirect' })),
              legend: 'denied',
            },
            {
              ...rateBy(edge('limiterErrors', { envoy_cluster_name: 'redirect' })),
              legend: 'no response',
            },
          ],
        },
      ],
    },
    {
      title: 'Upstream pods',
      panels: [
        {
          title: 'Healthy pods',
          description: 'By service. If edge pods report different numbers, the lowest one.',
          unit: 'short',
          queries: [line(`min by (envoy_cluster_name) (${edge('healthyPods')})`, BY_CLUSTER)],
        },
        {
          title: 'Responses from pods',
          description: 'By service and status class. A request without a response has the class 5.',
          unit: 'reqps',
          queries: [rateBy(edge('responses'), ['envoy_cluster_name', 'envoy_response_code_class'])],
        },
        {
          title: 'Retries, timeouts, ejections',
          description: 'Retries and timeouts per second, and the number of ejected pods.',
          unit: 'short',
          queries: [
            { ...rateBy(edge('retries')), legend: 'retries' },
            { ...rateBy(edge('timeouts')), legend: 'timeouts' },
            line(`sum(${edge('ejected')})`, 'ejected'),
          ],
        },
      ],
    },
    {
      title: 'Envoy',
      panels: [
        {
          title: 'Heap',
          description:
            'Percentage of the maximum, by pod. At 95 % and above, Envoy rejects requests.',
          unit: 'short',
          queries: [line(edge('heapPressure'), '{{pod}} %')],
        },
        {
          title: 'Certificate validity',
          description:
            'Days until the certificate expires. A very large number: there is no certificate.',
          unit: 'd',
          isNumber: true,
          queries: [line(`min(${edge('certificateDays')})`, 'days')],
        },
      ],
    },
  ],
}

/** Cassandra and the link cache. */
export const dependencies: Board = {
  name: 'dependencies',
  title: 'Curtail / Dependencies',
  rows: [
    {
      title: 'Cassandra',
      panels: [
        {
          title: 'Duration of statements',
          description:
            'p99 duration of statements, including all their attempts, by kind of statement.',
          unit: 's',
          queries: [
            {
              ...quantile(0.99, ours('cassandraCallSeconds', {}, '_bucket'), ['statement']),
              hasExemplars: true,
            },
          ],
        },
        {
          title: 'Statements',
          description: 'Statements by kind and result.',
          unit: 'ops',
          queries: [rateBy(ours('cassandraCallSeconds', {}, '_count'), ['statement', 'result'])],
        },
        {
          title: 'Failed attempts and retries',
          description: 'Failed attempts by reason, retries, and speculative executions.',
          unit: 'ops',
          queries: [
            rateBy(ours('cassandraErrors'), ['reason']),
            { ...rateBy(ours('cassandraRetries')), legend: 'retries' },
            { ...rateBy(ours('cassandraSpeculativeExecutions')), legend: 'speculative executions' },
          ],
        },
        {
          title: 'Nodes',
          description:
            'By pod: nodes to which the pod is connected. up, down: nodes that changed to this ' +
            'state within five minutes. pods with a majority: a majority of replicas responds.',
          unit: 'short',
          queries: [
            line(ours('cassandraHosts'), '{{pod}}'),
            line(`sum(${ours('cassandraMajority')})`, 'pods with a majority'),
            line(`sum by (state) (increase(${ours('cassandraNodeChanges')}[5m]))`, '{{state}}'),
          ],
        },
        {
          title: 'Requests in flight',
          description: 'Requests that wait for a response from Cassandra, by pod.',
          unit: 'short',
          queries: [line(ours('cassandraInFlight'), '{{pod}}')],
        },
      ],
    },
    {
      title: 'Link cache and background tasks',
      panels: [
        {
          title: 'Failed commands',
          description:
            'Failed commands by reason, and the number of pods that work without the cache.',
          unit: 'short',
          queries: [
            rateBy(ours('linkCacheFailures'), ['reason']),
            line(`sum(${ours('linkCacheUnavailable')})`, 'pods without the cache'),
          ],
        },
        {
          title: 'Invalidations',
          description:
            'Deletions of cache entries. queued: not yet confirmed. dropped: not retried.',
          unit: 'short',
          queries: [
            line(`sum(${ours('linkCacheInvalidationsQueued')})`, 'queued'),
            line(`sum(${ours('linkCacheInvalidationsDropped')})`, 'dropped'),
          ],
        },
        {
          title: 'Failed background tasks',
          description:
            'Failures of refills, claims of blocks, reads of pools, and other tasks, by task.',
          unit: 'ops',
          queries: [rateBy(ours('backgroundFailures'), ['task'])],
        },
      ],
    },
  ],
}
