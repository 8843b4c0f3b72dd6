// The dashboard of the controller: pools, rate limits and reconciliation.
import { type Board, chosen, line, rateBy } from './panel.ts'

const { ours } = chosen

/** The controller, which keeps pools full and sends rate limits to limiters. */
export const controller: Board = {
  name: 'controller',
  title: 'Curtail / Controller',
  rows: [
    {
      title: 'Pools',
      panels: [
        {
          title: 'Conditions',
          description: 'Number of CodePools by type, status and reason of their conditions.',
          unit: 'short',
          queries: [line(ours('poolConditions'), '{{type}} {{status}} {{reason}}')],
        },
        {
          title: 'Refill Jobs',
          description: 'Refill Jobs by result.',
          unit: 'ops',
          queries: [rateBy(ours('refillJobs'), ['result'])],
        },
        {
          title: 'Leaders',
          description: 'Normally 1. While the leader changes, 0 for some seconds.',
          unit: 'short',
          queries: [line(`sum(${ours('isLeader')})`, 'leaders')],
        },
      ],
    },
    {
      title: 'Rate limits',
      panels: [
        {
          title: 'Policies',
          description:
            'Number of RateLimitPolicies by type, status and reason of their conditions.',
          unit: 'short',
          queries: [line(ours('policyConditions'), '{{type}} {{status}} {{reason}}')],
        },
        {
          title: 'Limiters',
          description:
            'current: with the newest rules. outdated: with other rules, or none. ' +
            'missing: disconnected.',
          unit: 'short',
          queries: [line(`sum by (state) (${ours('policyLimiters')})`, '{{state}}')],
        },
      ],
    },
    {
      title: 'Reconciliation',
      panels: [
        {
          title: 'Reconciles',
          description: 'Reconciles per second, by controller and result.',
          unit: 'ops',
          queries: [rateBy(ours('reconciles'), ['controller', 'result'])],
        },
        {
          title: 'Work queue',
          description: 'Number of objects that wait for a reconcile, by queue.',
          unit: 'short',
          queries: [line(ours('queueDepth'), '{{name}}')],
        },
        {
          title: 'Calls to the API server',
          description: 'Calls by status and method. <error>: the call got no response.',
          unit: 'ops',
          queries: [rateBy(ours('apiRequests'), ['code', 'method'])],
        },
      ],
    },
  ],
}
