// Dashboards of the components: limiter, edge, controller, and their dependencies.
import { type Board, chosen, line, quantile, rateBy, times } from './panel.ts'

const { ours, edge } = chosen
const BY_CLUSTER = '{{envoy_cluster_name}}'

/** The rate limiter. */
export const limiter: Board = {
  name: 'limiter',
  title: 'Curtail / Limiter',
  rows: [
    {
      title: 'Decisions',
      panels: [
        {
          title: 'Decisions',
          description: 'From the store, from the deny cache, or local while Redis is unavailable.',
          unit: 'ops',
          queries: [rateBy(ours('limiterDecisions'), ['source', 'result'])],
        },
        {
          title: 'Exceeded limits',
          description: 'Hits that exceed a limit, by rule.',
          unit: 'ops',
          queries: [rateBy(ours('ruleOverLimit'), ['rule'])],
        },
        {
          title: 'Requested hits',
          description: 'Hits, by rule.',
          unit: 'ops',
          queries: [rateBy(ours('ruleTotalHits'), ['rule'])],
        },
      ],
    },
    {
      title: 'Health',
      panels: [
        {
          title: 'Duration of a call',
          description: 'After 20 ms the edge applies its local limits.',
          unit: 's',
          queries: times('limiterCallSeconds'),
        },
        {
          title: 'Calls from the edge',
          description: 'With a response, and without: timed out, failed or unavailable.',
          unit: 'ops',
          queries: [
            { ...rateBy(edge('limiterOk')), legend: 'admitted' },
            { ...rateBy(edge('limiterOver')), legend: 'denied' },
            { ...rateBy(edge('limiterErrors')), legend: 'no response' },
          ],
        },
        {
          title: 'Counters in Redis',
          description: 'Calls that failed, and processes that count locally.',
          unit: 'short',
          queries: [
            rateBy(ours('limiterStoreFailures'), ['reason']),
            line(`sum(${ours('limiterStoreUnavailable')})`, 'processes that count locally'),
          ],
        },
        {
          title: 'Rules',
          description: 'Sets of rules that were loaded, and sets that were rejected.',
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
          title: 'Duration of a request',
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
          title: 'Rejected by the local limits of the edge',
          description: 'The fallback limits apply when the limiter is unavailable.',
          unit: 'reqps',
          queries: [rateBy(edge('localRateLimited'), ['envoy_local_http_ratelimit_prefix'])],
        },
      ],
    },
    {
      title: 'Upstream pods',
      panels: [
        {
          title: 'Healthy pods',
          description: 'The lowest number that an edge pod reports.',
          unit: 'short',
          queries: [line(`min by (envoy_cluster_name) (${edge('healthyPods')})`, BY_CLUSTER)],
        },
        {
          title: 'Responses from pods',
          description: 'By service and status class; 5 also if no pod responded.',
          unit: 'reqps',
          queries: [rateBy(edge('responses'), ['envoy_cluster_name', 'envoy_response_code_class'])],
        },
        {
          title: 'Retries, time-outs, ejections',
          description: 'Retries and time-outs per second; pods ejected now.',
          unit: 'short',
          queries: [
            { ...rateBy(edge('retries')), legend: 'retries' },
            { ...rateBy(edge('timeouts')), legend: 'time-outs' },
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
          description: 'In percent of its limit; from 95 % Envoy rejects requests.',
          unit: 'short',
          queries: [line(edge('heapPressure'), '{{pod}} %')],
        },
        {
          title: 'Certificate validity',
          description: 'Days until expiry; a very large number without a certificate.',
          unit: 'd',
          isNumber: true,
          queries: [line(`min(${edge('certificateDays')})`, 'days')],
        },
      ],
    },
  ],
}

/** The controller, which keeps pools full. */
export const controller: Board = {
  name: 'controller',
  title: 'Curtail / Controller',
  rows: [
    {
      title: 'Pools',
      panels: [
        {
          title: 'Conditions',
          description: 'CodePools by condition and reason.',
          unit: 'short',
          queries: [line(ours('poolConditions'), '{{type}} {{status}} {{reason}}')],
        },
        {
          title: 'Refill Jobs',
          description: 'By result.',
          unit: 'ops',
          queries: [rateBy(ours('refillJobs'), ['result'])],
        },
        {
          title: 'Leaders',
          description: 'One, except for seconds during a change.',
          unit: 'short',
          queries: [line(`sum(${ours('isLeader')})`, 'leaders')],
        },
      ],
    },
    {
      title: 'Work',
      panels: [
        {
          title: 'Reconciles',
          description: 'By result.',
          unit: 'ops',
          queries: [rateBy(ours('reconciles'), ['controller', 'result'])],
        },
        {
          title: 'Queue',
          description: 'Keys that wait for a worker.',
          unit: 'short',
          queries: [line(ours('queueDepth'), '{{name}}')],
        },
        {
          title: 'Calls to the API server',
          description: 'By status; <error> if there was no response.',
          unit: 'ops',
          queries: [rateBy(ours('apiRequests'), ['code', 'method'])],
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
          title: 'Duration of a statement',
          description: 'p99 over all its attempts, by kind.',
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
          description: 'By kind and result.',
          unit: 'ops',
          queries: [rateBy(ours('cassandraCallSeconds', {}, '_count'), ['statement', 'result'])],
        },
        {
          title: 'Failed attempts and retries',
          description: 'Errors, retries, and speculative executions.',
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
            'Nodes that each process is connected to, processes to which a majority of replicas ' +
            'responds, and nodes that went down or came up within five minutes.',
          unit: 'short',
          queries: [
            line(ours('cassandraHosts'), '{{pod}}'),
            line(`sum(${ours('cassandraMajority')})`, 'processes with a majority'),
            line(`sum by (state) (increase(${ours('cassandraNodeChanges')}[5m]))`, '{{state}}'),
          ],
        },
        {
          title: 'In flight',
          description: 'Requests that wait for a response.',
          unit: 'short',
          queries: [line(ours('cassandraInFlight'), '{{pod}}')],
        },
      ],
    },
    {
      title: 'Link cache',
      panels: [
        {
          title: 'Failures',
          description: 'Commands that failed or timed out, and pods that work without the cache.',
          unit: 'short',
          queries: [
            rateBy(ours('linkCacheFailures'), ['reason']),
            line(`sum(${ours('linkCacheUnavailable')})`, 'pods without the cache'),
          ],
        },
        {
          title: 'Queued invalidations',
          description: 'Invalidations that the cache has not confirmed.',
          unit: 'short',
          queries: [
            line(`sum(${ours('linkCacheInvalidationsQueued')})`, 'queued'),
            line(`sum(${ours('linkCacheInvalidationsDropped')})`, 'dropped'),
          ],
        },
        {
          title: 'Failures of background tasks',
          description: 'Refills, claims of blocks, reads of pools and others.',
          unit: 'ops',
          queries: [rateBy(ours('backgroundFailures'), ['task'])],
        },
      ],
    },
  ],
}
