// The mutants of the caching of links: each takes one rule of the protocol away from what the real
// code is given, and breaks a promise by it. cache.test.ts sees that it does.
import * as bent from './cache-bends.ts'
import { HIT } from './cache-processes.ts'
import type { NamedCache } from './cache-scenarios.ts'
import { promises } from './cache-state.ts'

/** A mutant, and the promise that breaks. */
export interface CacheMutant extends NamedCache {
  readonly breaks: string
}

const calm = { unknowns: 0, crashes: 0 }
const oneLost = { unknowns: 1, crashes: 0 }
/** A change must be seen everywhere after two ticks. */
const on = { row: 'on', ticks: 2 } as const
const off = { ...on, row: 'off' } as const
/** Followed before, so that the cache has it. */
const hit = [HIT, 99] as const
const filled = { ...on, cell: hit } as const
const alike = [['A1'], ['B1']]
const onePod = [['A1', 'A2']]

const fresh = { breaks: promises.fresh, ...calm }
const gone = { breaks: promises.gone, ...calm }
/** Each rule of the protocol taken away in turn, and last what no rule can help. */
export const cacheMutants: readonly CacheMutant[] = [
  {
    name: 'a pod caches misses in memory',
    setup: { creators: ['c'], pods: onePod, begin: { ticks: 0 }, bent: bent.rememberMisses },
    ...fresh,
  },
  {
    name: 'a joined look-up returns the miss of an earlier one',
    setup: { creators: ['c'], pods: onePod, bent: bent.believeJoined },
    ...fresh,
  },
  {
    name: 'a joined look-up returns a hit of any age',
    setup: { changes: ['off'], pods: onePod, begin: on, bent: bent.joinOld },
    ...gone,
  },
  {
    name: 'the lifetime in memory starts at the response',
    setup: { changes: ['off'], pods: onePod, begin: on, bent: bent.countFromAnswer },
    ...gone,
  },
  {
    name: 'a hit of one replica goes to the cache',
    setup: {
      pods: alike,
      begin: { ...off, majority: 'away', replica: 'on' },
      bent: bent.believeReplica,
    },
    ...gone,
  },
  {
    name: 'a miss of one replica counts as a majority read',
    setup: {
      pods: alike,
      begin: { ...on, majority: 'away', replica: 'none' },
      bent: bent.believeReplica,
    },
    ...fresh,
  },
  {
    name: 'the cache is filled without a lease',
    setup: { changes: ['off'], pods: alike, begin: on, bent: bent.fillWithoutPermit },
    ...gone,
  },
  {
    name: 'the cache is filled without a lease: a fresh link',
    setup: { creators: ['c'], pods: alike, bent: bent.fillWithoutPermit },
    ...fresh,
  },
  {
    name: 'a lease is not compared',
    setup: { changes: ['off'], pods: alike, begin: on, bent: bent.fillAnyway },
    ...gone,
  },
  {
    name: 'writers fill the cache',
    setup: { creators: ['c', 'd'], changes: ['off'], pods: [['A1']], bent: bent.writersSet },
    ...gone,
  },
  {
    name: 'a change is confirmed although the cache did not respond',
    setup: { changes: ['off'], pods: [['A1']], begin: filled, bent: bent.acknowledgeAnyway },
    ...gone,
    ...oneLost,
  },
  {
    name: 'a change invalidates once',
    setup: {
      changes: ['off'],
      pods: [['A1']],
      begin: { ...filled, failover: 'lag-to-come' },
      bent: bent.sayOnce,
    },
    ...gone,
  },
  {
    name: 'enabling does not invalidate',
    setup: { changes: ['on'], pods: alike, begin: off, bent: bent.enableSilently },
    ...fresh,
  },
  {
    name: 'a 201 does not wait for the cache',
    setup: { creators: ['c'], pods: [], bent: bent.answerAtOnce },
    ...calm,
    breaks: promises.early,
  },
  {
    name: 'a failed invalidation is not retried',
    setup: { creators: ['c'], pods: [], bent: bent.repeatNothing },
    ...oneLost,
    breaks: promises.never,
  },
  {
    name: 'the cache is invalidated before the store is written',
    setup: { creators: ['c'], pods: [], bent: { tellsFirst: true } },
    ...calm,
    breaks: promises.early,
  },
  {
    name: 'standalone, a change is not invalidated: a fresh link',
    setup: {
      isAlone: true,
      creators: ['c'],
      pods: onePod,
      begin: { isForgotten: true, ticks: 0 },
      bent: bent.forgetNothing,
    },
    ...fresh,
  },
  {
    name: 'standalone, a look-up in flight is cached',
    setup: {
      isAlone: true,
      creators: ['c'],
      pods: onePod,
      begin: { isForgotten: true, ticks: 0 },
      bent: bent.forgetMemoryOnly,
    },
    ...fresh,
  },
  {
    name: 'the cache is restored from an old snapshot',
    setup: { pods: [['A1']], begin: { ...off, copy: hit, failover: 'copied' } },
    ...gone,
  },
]
