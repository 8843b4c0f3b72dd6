// Dashboards of the client-facing service: the SLOs, redirects, and creates with their pool.
import { recordOf } from './burn-rates.ts'
import { type Board, chosen, line, type Query, quantile, rateBy, times } from './panel.ts'

const { ours, edge, other } = chosen
const redirects = { envoy_cluster_name: 'redirect' }
const creates = { envoy_cluster_name: 'create' }
const ofRelease = '{release="$release"}'

function burns(name: 'redirect' | 'create'): Query[] {
  const windows = { '5m': 300, '1h': 3600, '6h': 21_600, '3d': 259_200 }
  return Object.entries(windows).map(([legend, seconds]) =>
    line(`${recordOf(name, seconds)}${ofRelease}`, legend),
  )
}

const BY_POD = '{{pod}}'

/** The state of the SLOs, and where to look on a violation. */
export const overview: Board = {
  name: 'overview',
  title: 'Curtail / Overview',
  rows: [
    {
      title: 'Objectives',
      panels: [
        {
          title: 'Failed or slow redirects',
          description:
            'Share of redirects that failed or took longer than 100 ms. Objective: at most 0.05 %.',
          unit: 'percentunit',
          queries: burns('redirect'),
        },
        {
          title: 'Failed creates',
          description:
            'Share of creates that failed, as counted by the edge. Objective: at most 0.1 %.',
          unit: 'percentunit',
          queries: burns('create'),
        },
        {
          title: 'Alerts',
          description: 'Number of alerts that are pending or firing.',
          unit: 'short',
          isNumber: true,
          queries: [line(`count(ALERTS${ofRelease}) or vector(0)`, 'alerts')],
        },
      ],
    },
    {
      title: 'Traffic',
      panels: [
        {
          title: 'Responses to clients',
          description: 'Responses of the edge, by status class.',
          unit: 'reqps',
          queries: [
            rateBy(edge('clientResponses', { envoy_http_conn_manager_prefix: 'edge' }), [
              'envoy_response_code_class',
            ]),
          ],
        },
        {
          title: 'Codes left',
          description: 'Generated codes that are not yet claimed, by pool.',
          unit: 'short',
          queries: [line(`max by (pool) (${ours('poolLevel')})`, '{{pool}}')],
        },
        {
          title: 'Processes by version',
          description: 'Number of scraped processes, by role and version.',
          unit: 'short',
          queries: [
            line(`count by (role, version) (${ours('buildInfo')})`, '{{role}} {{version}}'),
          ],
        },
      ],
    },
    {
      title: 'Processes',
      panels: [
        {
          title: 'CPU',
          description: 'CPU cores in use, by pod. Each process handles requests in one thread.',
          unit: 'short',
          queries: [line(`rate(${other('cpuSeconds')}[$__rate_interval])`, BY_POD)],
        },
        {
          title: 'Memory',
          description: 'Resident memory, by pod.',
          unit: 'bytes',
          queries: [line(other('memoryBytes'), BY_POD)],
        },
        {
          title: 'Event-loop lag',
          description: 'p99, by pod. Above 0.1 s, all responses of the pod are slow.',
          unit: 's',
          queries: [quantile(0.99, ours('loopLagSeconds', {}, '_bucket'), ['pod'])],
        },
      ],
    },
  ],
}

/** Redirects. */
export const redirect: Board = {
  name: 'redirect',
  title: 'Curtail / Redirects',
  rows: [
    {
      title: 'Responses',
      panels: [
        {
          title: 'Responses from pods',
          description: 'By status. 302 or 301: the code has a link. 404: it has none.',
          unit: 'reqps',
          queries: [rateBy(ours('requestSeconds', { route: 'code' }, '_count'), ['status'])],
        },
        {
          title: 'Duration in pods',
          description: 'Time from the headers of a request to the end of the response.',
          unit: 's',
          queries: times('requestSeconds', { route: 'code' }),
        },
        {
          title: 'Duration at the edge',
          description: 'Response time of redirect pods, as measured by the edge.',
          unit: 'ms',
          queries: [0.5, 0.99].map((ratio) =>
            quantile(ratio, edge('responseMs', redirects, '_bucket')),
          ),
        },
      ],
    },
    {
      title: 'Lookups',
      panels: [
        {
          title: 'Lookups by tier',
          description: 'replica and stale: no majority of the Cassandra replicas responded.',
          unit: 'ops',
          queries: [rateBy(ours('lookups'), ['tier', 'result'])],
        },
        {
          title: 'Cache fills',
          description: 'Writes of entries, by result. rejected: the link changed during the fill.',
          unit: 'ops',
          queries: [rateBy(ours('linkCacheFills'), ['result'])],
        },
        {
          title: 'Denied by rate limits',
          description: 'Requests that a rate limit denied: in the pods (by rule), and at the edge.',
          unit: 'reqps',
          queries: [
            rateBy(ours('requestsLimited'), ['rule']),
            { ...rateBy(edge('limiterOver', redirects)), legend: 'edge' },
          ],
        },
      ],
    },
  ],
}

/** Creates, and the codes they consume. */
export const create: Board = {
  name: 'create',
  title: 'Curtail / Creates and pool',
  rows: [
    {
      title: 'Responses',
      panels: [
        {
          title: 'Creates',
          description: 'Requests by result: created, replayed, or the code of the problem.',
          unit: 'reqps',
          queries: [rateBy(ours('creates'), ['result'])],
        },
        {
          title: 'Duration at the edge',
          description: 'Response time of create pods, including web pages.',
          unit: 'ms',
          queries: [0.5, 0.99].map((ratio) =>
            quantile(ratio, edge('responseMs', creates, '_bucket')),
          ),
        },
        {
          title: 'Claims',
          description:
            'Conditional inserts that reserve a code. unknown-resolved: resolved by a read.',
          unit: 'ops',
          queries: [rateBy(ours('claims'), ['result'])],
        },
      ],
    },
    {
      title: 'Pool',
      panels: [
        {
          title: 'Codes in the pool',
          description: 'Generated codes that are not yet claimed, by pool.',
          unit: 'short',
          queries: [line(`max by (pool) (${ours('poolLevel')})`, '{{pool}}')],
        },
        {
          title: 'Time until the pool is empty',
          description: 'How long the codes last at the claim rate of the last hour.',
          unit: 's',
          queries: [
            line(
              `max by (pool) (${ours('poolLevel')}) / ` +
                `(max by (pool) (delta(${ours('poolClaimed')}[1h])) * 1000 / 3600)`,
              '{{pool}}',
            ),
          ],
        },
        {
          title: 'Claimed blocks',
          description: 'Blocks that create pods claim, per second. A block contains 1,000 codes.',
          unit: 'ops',
          queries: [rateBy(ours('blocksClaimed'), ['pool'])],
        },
      ],
    },
    {
      title: 'Operator lists',
      panels: [
        {
          title: 'Entries in use',
          description:
            'By list: the most and the fewest entries of any pod. They differ during a change.',
          unit: 'short',
          queries: [
            line(`max by (list) (${ours('listEntries')})`, '{{list}} most'),
            line(`min by (list) (${ours('listEntries')})`, '{{list}} fewest'),
          ],
        },
        {
          title: 'Ignored lines',
          description: 'Lines that pods ignore, by list. 1 if a pod cannot read the list.',
          unit: 'short',
          queries: [line(`max by (list) (${ours('listFaults')})`, '{{list}}')],
        },
        {
          title: 'Blocked requests',
          description: 'Creates and redirects with a blocked target, by route.',
          unit: 'reqps',
          queries: [rateBy(ours('blocked'), ['route'])],
        },
      ],
    },
  ],
}
