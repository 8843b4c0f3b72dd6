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
          description: 'CodePools by condition, its status and its reason.',
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
          description: 'Normally one; while the leader changes, none for some seconds.',
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
          description: 'RateLimitPolicies by condition, its status and its reason.',
          unit: 'short',
          queries: [line(ours('policyConditions'), '{{type}} {{status}} {{reason}}')],
        },
        {
          title: 'Limiters',
          description: 'current: have the newest rules. outdated: others. missing: disconnected.',
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
          description: 'Reconciles by controller and result.',
          unit: 'ops',
          queries: [rateBy(ours('reconciles'), ['controller', 'result'])],
        },
        {
          title: 'Work queue',
          description: 'Objects that wait for a reconcile, by queue.',
          unit: 'short',
          queries: [line(ours('queueDepth'), '{{name}}')],
        },
        {
          title: 'Calls to the API server',
          description: 'By status and method. <error>: there was no response.',
          unit: 'ops',
          queries: [rateBy(ours('apiRequests'), ['code', 'method'])],
        },
      ],
    },
  ],
}
