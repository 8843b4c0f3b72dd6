// Dashboards of the parts: limiter, edge, controller, and what they all depend on.
import { type Board, chosen, line, quantile, rateBy, times } from './panel.ts'

const { ours, edge } = chosen
const BY_CLUSTER = '{{envoy_cluster_name}}'

/** Deciding who may. */
export const limiter: Board = {
  name: 'limiter',
  title: 'Curtail / Limiter',
  rows: [
    {
      title: 'Decisions',
      panels: [
        {
          title: 'Decisions',
          description: 'By the store, a memory of denials, or alone while Redis is away.',
          unit: 'ops',
          queries: [rateBy(ours('limiterDecisions'), ['by', 'outcome'])],
        },
        {
          title: 'Over the limit',
          description: 'Hits over the limit, by rule.',
          unit: 'ops',
          queries: [rateBy(ours('ruleOverLimit'), ['rule'])],
        },
        {
          title: 'Asked for',
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
          title: 'Time of a call',
          description: 'The edge waits 20 ms, then it decides alone.',
          unit: 's',
          queries: times('limiterCallSeconds'),
        },
        {
          title: 'As the edge sees it',
          description: 'Answered, and silent: late, failed or gone.',
          unit: 'ops',
          queries: [
            { ...rateBy(edge('limiterOk')), legend: 'within' },
            { ...rateBy(edge('limiterOver')), legend: 'over' },
            { ...rateBy(edge('limiterSilent')), legend: 'silent' },
          ],
        },
        {
          title: 'Redis of the counters',
          description: 'Calls that failed, and processes that count alone.',
          unit: 'short',
          queries: [
            rateBy(ours('limiterStoreFailures'), ['why']),
            line(`sum(${ours('limiterStoreAway')})`, 'processes alone'),
          ],
        },
        {
          title: 'Rules',
          description: 'Sets that came into force, and sets that were refused.',
          unit: 'short',
          queries: [
            line(`sum(${ours('configLoadSuccess')})`, 'in force'),
            line(`sum(${ours('configLoadError')})`, 'refused'),
          ],
        },
      ],
    },
  ],
}

/** Envoy. */
export const edgeBoard: Board = {
  name: 'edge',
  title: 'Curtail / Edge',
  rows: [
    {
      title: 'Clients',
      panels: [
        {
          title: 'Time of a request',
          description: 'From a client’s first byte to the last of the answer.',
          unit: 'ms',
          queries: [0.5, 0.99].map((part) =>
            quantile(part, edge('clientMs', { envoy_http_conn_manager_prefix: 'edge' }, '_bucket')),
          ),
        },
        {
          title: 'Connections',
          description: 'Open connections of clients, by edge.',
          unit: 'short',
          queries: [
            line(edge('connections', { envoy_http_conn_manager_prefix: 'edge' }), '{{pod}}'),
          ],
        },
        {
          title: 'Refused by the edge’s own limits',
          description: 'The fallback refuses only while the limiter is silent.',
          unit: 'reqps',
          queries: [rateBy(edge('localRefused'), ['envoy_local_http_ratelimit_prefix'])],
        },
      ],
    },
    {
      title: 'Pods behind it',
      panels: [
        {
          title: 'Healthy pods',
          description: 'As each edge sees them, the fewest.',
          unit: 'short',
          queries: [line(`min by (envoy_cluster_name) (${edge('healthyPods')})`, BY_CLUSTER)],
        },
        {
          title: 'Answers of pods',
          description: 'By service and class of status; 5 also where no pod answered.',
          unit: 'reqps',
          queries: [rateBy(edge('answers'), ['envoy_cluster_name', 'envoy_response_code_class'])],
        },
        {
          title: 'Tried again, timed out, left out',
          description: 'Retries and time-outs a second; pods that are left out now.',
          unit: 'short',
          queries: [
            { ...rateBy(edge('retries')), legend: 'retries' },
            { ...rateBy(edge('timeouts')), legend: 'time-outs' },
            line(`sum(${edge('ejected')})`, 'left out'),
          ],
        },
      ],
    },
    {
      title: 'Itself',
      panels: [
        {
          title: 'Heap',
          description: 'Of its bound; from 0.95 on requests are refused.',
          unit: 'short',
          queries: [line(edge('heapPressure'), '{{pod}} %')],
        },
        {
          title: 'Days of the certificate',
          description: 'Until it ends; a very large number where there is none.',
          unit: 'd',
          isNumber: true,
          queries: [line(`min(${edge('daysOfCertificate')})`, 'days')],
        },
      ],
    },
  ],
}

/** Keeping pools full. */
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
          description: 'By what became of them.',
          unit: 'ops',
          queries: [rateBy(ours('refillJobs'), ['outcome'])],
        },
        {
          title: 'Leaders',
          description: 'One, but for the seconds of a change.',
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
          description: 'By status; <error> where there was no answer.',
          unit: 'ops',
          queries: [rateBy(ours('apiRequests'), ['code', 'method'])],
        },
      ],
    },
  ],
}

/** Cassandra and the cache. */
export const dependencies: Board = {
  name: 'dependencies',
  title: 'Curtail / Dependencies',
  rows: [
    {
      title: 'Cassandra',
      panels: [
        {
          title: 'Time of a statement',
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
          description: 'By kind and outcome.',
          unit: 'ops',
          queries: [rateBy(ours('cassandraCallSeconds', {}, '_count'), ['statement', 'outcome'])],
        },
        {
          title: 'Failed and repeated attempts',
          description: 'Errors, repeats, and reads of which a second replica was asked.',
          unit: 'ops',
          queries: [
            rateBy(ours('cassandraErrors'), ['why']),
            { ...rateBy(ours('cassandraRetries')), legend: 'repeated' },
            { ...rateBy(ours('cassandraSecondReads')), legend: 'second replica' },
          ],
        },
        {
          title: 'Nodes',
          description:
            'That each process is connected to, processes to which a majority of replicas ' +
            'responds, and nodes that went down or came up in five minutes.',
          unit: 'short',
          queries: [
            line(ours('cassandraHosts'), '{{pod}}'),
            line(`sum(${ours('cassandraMajority')})`, 'processes with a majority'),
            line(`sum by (state) (increase(${ours('cassandraNodeChanges')}[5m]))`, '{{state}}'),
          ],
        },
        {
          title: 'In flight',
          description: 'Requests that nodes have not answered.',
          unit: 'short',
          queries: [line(ours('cassandraInFlight'), '{{pod}}')],
        },
      ],
    },
    {
      title: 'Cache of links',
      panels: [
        {
          title: 'Failures',
          description: 'Commands that failed or were late, and pods that do without it.',
          unit: 'short',
          queries: [
            rateBy(ours('linkCacheFailures'), ['why']),
            line(`sum(${ours('linkCacheAway')})`, 'pods without'),
          ],
        },
        {
          title: 'To be forgotten',
          description: 'Changed links that the cache has not confirmed to have forgotten.',
          unit: 'short',
          queries: [
            line(`sum(${ours('linkForgetsQueued')})`, 'queued'),
            line(`sum(${ours('linkForgetsDropped')})`, 'given up'),
          ],
        },
        {
          title: 'Failures of background tasks',
          description: 'Refills, claims of blocks, reads of pools, and the like.',
          unit: 'ops',
          queries: [rateBy(ours('backgroundFailures'), ['task'])],
        },
      ],
    },
  ],
}
