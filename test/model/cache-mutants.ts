// The mutants of the link cache protocol: each removes one rule and thereby violates an invariant;
// cache.test.ts verifies that the explorer finds it.
import * as mutations from './cache-mutations.ts'
import { HIT } from './cache-processes.ts'
import type { NamedCache } from './cache-scenarios.ts'
import { invariants } from './cache-state.ts'

/** A mutant, and the invariant that it violates. */
export interface CacheMutant extends NamedCache {
  readonly breaks: string
}

const noFaults = { timeouts: 0, crashes: 0 }
const oneTimeout = { timeouts: 1, crashes: 0 }
/** A change must be visible to all readers after two ticks. */
const on = { row: 'on', ticks: 2 } as const
const off = { ...on, row: 'off' } as const
/** The cache has an entry of the link. */
const cachedHit = [HIT, 99] as const
const filled = { ...on, cell: cachedHit } as const
const twoPods = [['A1'], ['B1']]
const onePod = [['A1', 'A2']]

const notFound = { breaks: invariants.notFound, ...noFaults }
const stale = { breaks: invariants.stale, ...noFaults }
/** One mutant for each rule of the protocol, then a fault that no rule tolerates. */
export const cacheMutants: readonly CacheMutant[] = [
  {
    name: 'a pod caches misses in memory',
    setup: {
      creations: ['c'],
      pods: onePod,
      initial: { ticks: 0 },
      mutation: mutations.cacheMisses,
    },
    ...notFound,
  },
  {
    name: 'a joined lookup returns the miss of an earlier one',
    setup: { creations: ['c'], pods: onePod, mutation: mutations.returnJoinedMiss },
    ...notFound,
  },
  {
    name: 'a joined lookup returns a hit of any age',
    setup: { changes: ['off'], pods: onePod, initial: on, mutation: mutations.returnOldHit },
    ...stale,
  },
  {
    name: 'the lifetime in memory starts at the response',
    setup: { changes: ['off'], pods: onePod, initial: on, mutation: mutations.countFromResponse },
    ...stale,
  },
  {
    name: 'a hit of one replica goes to the cache',
    setup: {
      pods: twoPods,
      initial: { ...off, majority: 'unavailable', replica: 'on' },
      mutation: mutations.trustReplica,
    },
    ...stale,
  },
  {
    name: 'a miss of one replica counts as a majority read',
    setup: {
      pods: twoPods,
      initial: { ...on, majority: 'unavailable', replica: 'none' },
      mutation: mutations.trustReplica,
    },
    ...notFound,
  },
  {
    name: 'the cache is filled without a lease',
    setup: { changes: ['off'], pods: twoPods, initial: on, mutation: mutations.fillWithoutLease },
    ...stale,
  },
  {
    name: 'the cache is filled without a lease: a created link',
    setup: { creations: ['c'], pods: twoPods, mutation: mutations.fillWithoutLease },
    ...notFound,
  },
  {
    name: 'a lease is not compared',
    setup: {
      changes: ['off'],
      pods: twoPods,
      initial: on,
      mutation: mutations.fillWithoutComparing,
    },
    ...stale,
  },
  {
    name: 'writers fill the cache',
    setup: {
      creations: ['c', 'd'],
      changes: ['off'],
      pods: [['A1']],
      mutation: mutations.writersFill,
    },
    ...stale,
  },
  {
    name: 'a change is confirmed although the cache did not respond',
    setup: { changes: ['off'], pods: [['A1']], initial: filled, mutation: mutations.confirmAnyway },
    ...stale,
    ...oneTimeout,
  },
  {
    name: 'a change invalidates once',
    setup: {
      changes: ['off'],
      pods: [['A1']],
      initial: { ...filled, failover: 'lag-pending' },
      mutation: mutations.invalidateOnce,
    },
    ...stale,
  },
  {
    name: 'enabling does not invalidate',
    setup: {
      changes: ['on'],
      pods: twoPods,
      initial: off,
      mutation: mutations.enableWithoutInvalidation,
    },
    ...notFound,
  },
  {
    name: 'a 201 does not wait for the cache',
    setup: { creations: ['c'], pods: [], mutation: mutations.respondWithoutInvalidation },
    ...noFaults,
    breaks: invariants.early201,
  },
  {
    name: 'a failed invalidation is not retried',
    setup: { creations: ['c'], pods: [], mutation: mutations.retryNothing },
    ...oneTimeout,
    breaks: invariants.notInvalidated,
  },
  {
    name: 'the cache is invalidated before the store is written',
    setup: { creations: ['c'], pods: [], mutation: { invalidatesFirst: true } },
    ...noFaults,
    breaks: invariants.early201,
  },
  {
    name: 'standalone, the process does not invalidate its memory: a created link',
    setup: {
      isStandalone: true,
      creations: ['c'],
      pods: onePod,
      initial: { isInvalidated: true, ticks: 0 },
      mutation: mutations.invalidateNothing,
    },
    ...notFound,
  },
  {
    name: 'standalone, a lookup in flight is cached',
    setup: {
      isStandalone: true,
      creations: ['c'],
      pods: onePod,
      initial: { isInvalidated: true, ticks: 0 },
      mutation: mutations.invalidateMemoryOnly,
    },
    ...notFound,
  },
  {
    name: 'the cache is restored from an old snapshot',
    setup: { pods: [['A1']], initial: { ...off, copy: cachedHit, failover: 'copied' } },
    ...stale,
  },
]
