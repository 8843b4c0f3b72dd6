// Scenarios of readers, create processes, operators and faults in which every invariant must hold.
// cache.test.ts runs the small ones, test/soak/models.ts runs all.
import type { CacheSetup } from './cache-model.ts'

/** A scenario with its name. */
export interface NamedCache {
  readonly name: string
  readonly setup: CacheSetup
  readonly timeouts: number
  readonly crashes: number
}

const noFaults = { timeouts: 0, crashes: 0 }
const oneTimeout = { timeouts: 1, crashes: 0 }
/** A change must be visible to all readers after two ticks. */
const on = { row: 'on', ticks: 2 } as const
const twoPods = [['A1'], ['B1']]
const onePod = [['A1', 'A2']]
const both = [['A1', 'A2'], ['B1']]

/** Scenarios that are small enough for the unit tests. */
export const cacheScenarios: readonly NamedCache[] = [
  {
    name: 'created link, two lookups on a pod',
    setup: { creations: ['c'], pods: onePod, initial: { ticks: 1 } },
    ...noFaults,
  },
  {
    name: 'created link, a response is lost',
    setup: { creations: ['c'], pods: twoPods, initial: { ticks: 0 } },
    ...oneTimeout,
  },
  {
    name: 'created link, the cache is flushed',
    setup: { creations: ['c'], pods: twoPods, initial: { ticks: 0, flushes: 1 } },
    ...noFaults,
  },
  {
    name: 'disable, lookups on two pods',
    setup: { changes: ['off'], pods: twoPods, initial: on },
    ...noFaults,
  },
  {
    name: 'disable, a response is lost',
    setup: { changes: ['off'], pods: [['A1']], initial: on },
    ...oneTimeout,
  },
  {
    name: 'disable, a failover loses the last command',
    setup: { changes: ['off'], pods: [['A1']], initial: { ...on, failover: 'lag-pending' } },
    ...noFaults,
  },
  {
    name: 'disable, the majority is unavailable and recovers, a replica lags',
    setup: { changes: ['off'], pods: [['A1']], initial: { ...on, replica: 'on', outages: 1 } },
    ...noFaults,
  },
  {
    name: 'disable and enable concurrently',
    setup: { changes: ['off', 'on'], pods: twoPods, initial: { ...on, ticks: 0 } },
    ...noFaults,
  },
  {
    name: 'a create retried, disable',
    setup: { creations: ['c', 'd'], changes: ['off'], pods: [['A1']] },
    ...noFaults,
  },
  {
    name: 'standalone, created link, two lookups',
    setup: {
      isStandalone: true,
      creations: ['c'],
      pods: onePod,
      initial: { isInvalidated: true, ticks: 0 },
    },
    ...noFaults,
  },
  {
    name: 'standalone, disable',
    setup: { isStandalone: true, changes: ['off'], pods: [['A1']], initial: on },
    ...noFaults,
  },
]

/** Larger scenarios, for the fault tests. */
export const largeCacheScenarios: readonly NamedCache[] = [
  ...cacheScenarios.map((small) => ({ ...small, timeouts: 1 })),
  {
    name: 'created link, lookups on two pods',
    setup: { creations: ['c'], pods: both, initial: { ticks: 1 } },
    ...noFaults,
  },
  {
    name: 'created link, created twice, lookups on two pods',
    setup: { creations: ['c', 'd'], pods: both, initial: { ticks: 1 } },
    ...noFaults,
  },
  {
    name: 'disable, two lookups on a pod with delayed responses',
    setup: { changes: ['off'], pods: onePod, isCacheSlow: true, initial: on },
    ...noFaults,
  },
  {
    name: 'disable, two lookups on a pod and one on another',
    setup: { changes: ['off'], pods: both, initial: on },
    ...noFaults,
  },
  {
    name: 'disable, the operator crashes',
    setup: { changes: ['off'], pods: twoPods, initial: on },
    timeouts: 0,
    crashes: 1,
  },
  {
    name: 'disable, a failover loses the last command, two pods',
    setup: { changes: ['off'], pods: twoPods, initial: { ...on, failover: 'lag-pending' } },
    ...noFaults,
  },
  {
    name: 'disable, the cache is flushed, two pods',
    setup: { changes: ['off'], pods: twoPods, initial: { ...on, flushes: 1 } },
    ...noFaults,
  },
  {
    name: 'disable and enable concurrently, two pods',
    setup: { changes: ['off', 'on'], pods: twoPods, initial: on },
    ...noFaults,
  },
]

/** Scenarios with too many processes to explore every interleaving: random walks. */
export const walkedCacheScenarios: readonly NamedCache[] = [
  {
    name: 'created twice, disabled and enabled, nine lookups on three pods',
    setup: {
      creations: ['c', 'd'],
      changes: ['off', 'on'],
      pods: [
        ['A1', 'A2', 'A3'],
        ['B1', 'B2', 'B3'],
        ['C1', 'C2', 'C3'],
      ],
      initial: { ticks: 8, flushes: 1, failover: 'lag-pending', replica: 'none', outages: 2 },
    },
    timeouts: 3,
    crashes: 1,
  },
]
