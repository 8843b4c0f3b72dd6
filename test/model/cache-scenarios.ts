// Which readers, creators and operators meet which faults: the scenarios that must hold.
// cache.test.ts runs the small ones, test/soak/models.ts all.
import type { CacheSetup } from './cache-model.ts'

/** A scenario by its name. */
export interface NamedCache {
  readonly name: string
  readonly setup: CacheSetup
  readonly unknowns: number
  readonly crashes: number
}

const calm = { unknowns: 0, crashes: 0 }
const oneLost = { unknowns: 1, crashes: 0 }
/** A change must be seen everywhere after two ticks. */
const on = { row: 'on', ticks: 2 } as const
const alike = [['A1'], ['B1']]
const onePod = [['A1', 'A2']]
const both = [['A1', 'A2'], ['B1']]

/** Scenarios with the faults that the inner loop has time for. */
export const cacheScenarios: readonly NamedCache[] = [
  {
    name: 'fresh link, two look-ups on a pod',
    setup: { creators: ['c'], pods: onePod, begin: { ticks: 1 } },
    ...calm,
  },
  {
    name: 'fresh link, a response is lost',
    setup: { creators: ['c'], pods: alike, begin: { ticks: 0 } },
    ...oneLost,
  },
  {
    name: 'fresh link, the cache is flushed',
    setup: { creators: ['c'], pods: alike, begin: { ticks: 0, flushes: 1 } },
    ...calm,
  },
  {
    name: 'disable, look-ups on two pods',
    setup: { changes: ['off'], pods: alike, begin: on },
    ...calm,
  },
  {
    name: 'disable, a response is lost',
    setup: { changes: ['off'], pods: [['A1']], begin: on },
    ...oneLost,
  },
  {
    name: 'disable, a failover loses the last command',
    setup: { changes: ['off'], pods: [['A1']], begin: { ...on, failover: 'lag-to-come' } },
    ...calm,
  },
  {
    name: 'disable, the majority is unavailable and recovers, a replica lags',
    setup: { changes: ['off'], pods: [['A1']], begin: { ...on, replica: 'on', absences: 1 } },
    ...calm,
  },
  {
    name: 'disable and enable concurrently',
    setup: { changes: ['off', 'on'], pods: alike, begin: { ...on, ticks: 0 } },
    ...calm,
  },
  {
    name: 'a create retried, disable',
    setup: { creators: ['c', 'd'], changes: ['off'], pods: [['A1']] },
    ...calm,
  },
  {
    name: 'alone, fresh link, two look-ups',
    setup: { isAlone: true, creators: ['c'], pods: onePod, begin: { isForgotten: true, ticks: 0 } },
    ...calm,
  },
  {
    name: 'alone, disable',
    setup: { isAlone: true, changes: ['off'], pods: [['A1']], begin: on },
    ...calm,
  },
]

/** Larger scenarios, for the fault tests. */
export const largeCacheScenarios: readonly NamedCache[] = [
  ...cacheScenarios.map((small) => ({ ...small, unknowns: 1 })),
  {
    name: 'fresh link, look-ups on two pods',
    setup: { creators: ['c'], pods: both, begin: { ticks: 1 } },
    ...calm,
  },
  {
    name: 'fresh link, created twice, look-ups on two pods',
    setup: { creators: ['c', 'd'], pods: both, begin: { ticks: 1 } },
    ...calm,
  },
  {
    name: 'disable, two look-ups on a pod with delayed responses',
    setup: { changes: ['off'], pods: onePod, isCacheSlow: true, begin: on },
    ...calm,
  },
  {
    name: 'disable, two look-ups on a pod and one on another',
    setup: { changes: ['off'], pods: both, begin: on },
    ...calm,
  },
  {
    name: 'disable, the operator crashes',
    setup: { changes: ['off'], pods: alike, begin: on },
    unknowns: 0,
    crashes: 1,
  },
  {
    name: 'disable, a failover loses the last command, two pods',
    setup: { changes: ['off'], pods: alike, begin: { ...on, failover: 'lag-to-come' } },
    ...calm,
  },
  {
    name: 'disable, the cache is flushed, two pods',
    setup: { changes: ['off'], pods: alike, begin: { ...on, flushes: 1 } },
    ...calm,
  },
  {
    name: 'disable and enable concurrently, two pods',
    setup: { changes: ['off', 'on'], pods: alike, begin: on },
    ...calm,
  },
]

/** Too many processes to explore every interleaving: walked at random. */
export const walkedCacheScenarios: readonly NamedCache[] = [
  {
    name: 'created twice, disabled and enabled, nine look-ups on three pods',
    setup: {
      creators: ['c', 'd'],
      changes: ['off', 'on'],
      pods: [
        ['A1', 'A2', 'A3'],
        ['B1', 'B2', 'B3'],
        ['C1', 'C2', 'C3'],
      ],
      begin: { ticks: 8, flushes: 1, failover: 'lag-to-come', replica: 'none', absences: 2 },
    },
    unknowns: 3,
    crashes: 1,
  },
]
