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
          title: 'Bad redirects',
          description:
            'Failed or slower than 100 ms, as a share of all; objective: at most 0.05 %.',
          unit: 'percentunit',
          queries: burns('redirect'),
        },
        {
          title: 'Bad creates',
          description: 'Failed at the edge, as a share of all; objective: at most 0.1 %.',
          unit: 'percentunit',
          queries: burns('create'),
        },
        {
          title: 'Alerts',
          description: 'Alerts that are pending or firing now.',
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
          description: 'By status class, as sent by the edge.',
          unit: 'reqps',
          queries: [
            rateBy(edge('clientResponses', { envoy_http_conn_manager_prefix: 'edge' }), [
              'envoy_response_code_class',
            ]),
          ],
        },
        {
          title: 'Codes left',
          description: 'Generated and not yet claimed, by pool.',
          unit: 'short',
          queries: [line(`max by (pool) (${ours('poolLevel')})`, '{{pool}}')],
        },
        {
          title: 'Processes',
          description: 'Scraped processes by role and version.',
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
          description: 'Cores in use; each process has one thread for requests.',
          unit: 'short',
          queries: [line(`rate(${other('cpuSeconds')}[$__rate_interval])`, BY_POD)],
        },
        {
          title: 'Memory',
          description: 'Resident memory.',
          unit: 'bytes',
          queries: [line(other('memoryBytes'), BY_POD)],
        },
        {
          title: 'Lag of the event loop',
          description: 'p99; above 0.1 s every response of the pod is slow.',
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
          description: 'By status: 302 if the code has a link, 404 if it has none.',
          unit: 'reqps',
          queries: [rateBy(ours('requestSeconds', { route: 'code' }, '_count'), ['status'])],
        },
        {
          title: 'Duration in pods',
          description: 'From the headers of a request to the end of its response.',
          unit: 's',
          queries: times('requestSeconds', { route: 'code' }),
        },
        {
          title: 'Duration at the edge',
          description: 'Time that the edge waits for redirect pods.',
          unit: 'ms',
          queries: [0.5, 0.99].map((ratio) =>
            quantile(ratio, edge('responseMs', redirects, '_bucket')),
          ),
        },
      ],
    },
    {
      title: 'Look-ups',
      panels: [
        {
          title: 'Tiers',
          description: 'Look-ups by tier; stale and replica mean that the store is unavailable.',
          unit: 'ops',
          queries: [rateBy(ours('lookups'), ['tier', 'result'])],
        },
        {
          title: 'Cache fills',
          description:
            'Entries written to the shared cache; rejected: the link changed during the fill.',
          unit: 'ops',
          queries: [rateBy(ours('linkCacheFills'), ['result'])],
        },
        {
          title: 'Rejected by rate limits',
          description: 'Requests that a limit rejected, in pods and at the edge.',
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
          description: 'By result: created, replayed, or the name of the problem.',
          unit: 'reqps',
          queries: [rateBy(ours('creates'), ['result'])],
        },
        {
          title: 'Duration at the edge',
          description: 'Time that the edge waits for create pods, including pages.',
          unit: 'ms',
          queries: [0.5, 0.99].map((ratio) =>
            quantile(ratio, edge('responseMs', creates, '_bucket')),
          ),
        },
        {
          title: 'Claims',
          description: 'Claims of codes in the store; unknown ones are resolved by reading back.',
          unit: 'ops',
          queries: [rateBy(ours('claims'), ['result'])],
        },
      ],
    },
    {
      title: 'Pool',
      panels: [
        {
          title: 'Level',
          description: 'Codes generated and not yet claimed.',
          unit: 'short',
          queries: [line(`max by (pool) (${ours('poolLevel')})`, '{{pool}}')],
        },
        {
          title: 'Time to empty',
          description: 'At the rate of the last hour.',
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
          title: 'Blocks claimed',
          description: 'By create pods, a thousand codes each.',
          unit: 'ops',
          queries: [rateBy(ours('blocksClaimed'), ['pool'])],
        },
      ],
    },
  ],
}
