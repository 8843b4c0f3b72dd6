// Dashboards of what clients meet: the promises, redirects, creates with their pool.
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

const roles = '{{pod}}'

/** Whether the promises are kept, and where to look if not. */
export const overview: Board = {
  name: 'overview',
  title: 'Curtail / Overview',
  rows: [
    {
      title: 'Promises',
      panels: [
        {
          title: 'Bad redirects',
          description: 'Wrong or later than 100 ms, as a part of all; promised: at most 0.05 %.',
          unit: 'percentunit',
          queries: burns('redirect'),
        },
        {
          title: 'Bad creates',
          description: 'Failed at the edge, as a part of all; promised: at most 0.1 %.',
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
          title: 'Answers to clients',
          description: 'By the class of their status, as the edge gave them.',
          unit: 'reqps',
          queries: [
            rateBy(edge('clientAnswers', { envoy_http_conn_manager_prefix: 'edge' }), [
              'envoy_response_code_class',
            ]),
          ],
        },
        {
          title: 'Codes left',
          description: 'Minted and not yet claimed, by pool.',
          unit: 'short',
          queries: [line(`max by (pool) (${ours('poolLevel')})`, '{{pool}}')],
        },
        {
          title: 'Processes',
          description: 'How many of each role are scraped, and which version they are.',
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
          description: 'Cores in use; a process of ours has one thread for requests.',
          unit: 'short',
          queries: [line(`rate(${other('cpuSeconds')}[$__rate_interval])`, roles)],
        },
        {
          title: 'Memory',
          description: 'Resident memory.',
          unit: 'bytes',
          queries: [line(other('memoryBytes'), roles)],
        },
        {
          title: 'Lag of the event loop',
          description: 'p99; above 0.1 s a pod answers late whatever it is asked.',
          unit: 's',
          queries: [quantile(0.99, ours('loopLagSeconds', {}, '_bucket'), ['pod'])],
        },
      ],
    },
  ],
}

/** Following links. */
export const redirect: Board = {
  name: 'redirect',
  title: 'Curtail / Redirects',
  rows: [
    {
      title: 'Answers',
      panels: [
        {
          title: 'Answers of pods',
          description: 'Redirects by status: 302 a link, 404 none.',
          unit: 'reqps',
          queries: [rateBy(ours('requestSeconds', { route: 'code' }, '_count'), ['status'])],
        },
        {
          title: 'Time in pods',
          description: 'From the head of a request to the end of its answer.',
          unit: 's',
          queries: times('requestSeconds', { route: 'code' }),
        },
        {
          title: 'Time at the edge',
          description: 'What the edge waited for pods.',
          unit: 'ms',
          queries: [0.5, 0.99].map((part) =>
            quantile(part, edge('answerMs', redirects, '_bucket')),
          ),
        },
      ],
    },
    {
      title: 'Look-ups',
      panels: [
        {
          title: 'Who answered',
          description: 'Look-ups by tier; stale and replica mean that the store is in trouble.',
          unit: 'ops',
          queries: [rateBy(ours('lookups'), ['tier', 'outcome'])],
        },
        {
          title: 'Fills of the cache',
          description: 'Entries given to the shared cache; refused: the link changed meanwhile.',
          unit: 'ops',
          queries: [rateBy(ours('linkCacheFills'), ['outcome'])],
        },
        {
          title: 'Refused by limits',
          description: 'Requests that a limit refused, in pods and at the edge.',
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

/** Creating links, and the codes that it takes. */
export const create: Board = {
  name: 'create',
  title: 'Curtail / Creates and pool',
  rows: [
    {
      title: 'Answers',
      panels: [
        {
          title: 'Creates',
          description: 'By outcome: created, replayed, or the name of the problem.',
          unit: 'reqps',
          queries: [rateBy(ours('creates'), ['outcome'])],
        },
        {
          title: 'Time at the edge',
          description: 'What the edge waited for create pods, pages among them.',
          unit: 'ms',
          queries: [0.5, 0.99].map((part) => quantile(part, edge('answerMs', creates, '_bucket'))),
        },
        {
          title: 'Claims',
          description: 'Of codes in the store; unknown ones are resolved by a read.',
          unit: 'ops',
          queries: [rateBy(ours('claims'), ['outcome'])],
        },
      ],
    },
    {
      title: 'Pool',
      panels: [
        {
          title: 'Level',
          description: 'Codes minted and not yet claimed.',
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
          description: 'By creators, a thousand codes each.',
          unit: 'ops',
          queries: [rateBy(ours('blocksClaimed'), ['pool'])],
        },
      ],
    },
  ],
}
