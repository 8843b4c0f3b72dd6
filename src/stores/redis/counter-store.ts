// Counters in Redis. One script runs the calls of one event-loop turn in sequence; each call is
// atomic. If its counters are in several hash slots of a Cluster, or some in the separate Redis for
// per-second limits, a call is split into concurrent groups. Each group is atomic; if one denies
// the call, the hits that the others have counted are refunded.
import { COUNT_MAX, type Decision } from '../../limits/algorithm.ts'
import { defaultAlgorithm } from '../../limits/algorithms.ts'
import { type CounterUpdate, type CounterStore, asSubset } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'
import { within } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { createBatches } from './batches.ts'
import type { RedisConnection } from './connection.ts'
import { keySlot } from './key-slot.ts'
import { refundsOf } from './refunds.ts'
import { traceBatches } from './trace-commands.ts'

/** Counters in Redis. */
export interface RedisCounterStore extends CounterStore {
  /** Resolves if every Redis of the store responds and counts. Throws StoreError. */
  probe(): Promise<void>
  /** Closes the connections; calls in flight fail with StoreError. */
  close(): void
}

/** Options of the store. */
export interface RedisCounterStoreOptions {
  readonly connection: RedisConnection
  /** For updates with `isPerSecond`; if absent they use `connection`. */
  readonly perSecond?: RedisConnection | undefined
  /** The prefix of each key. */
  readonly keyPrefix: string
  /** Called for failed refunds, which no caller awaits. */
  readonly onFailure?: ((error: unknown) => void) | undefined
  /** Replaces Redis's clock, in microseconds; only in equivalence tests. */
  readonly nowUs?: (() => number) | undefined
}

/** The probe counts hits: a Redis that is out of memory responds to PING but rejects writes. */
const probes: readonly CounterUpdate[] = [true, false].map((isPerSecond) => ({
  key: 'probe',
  algorithm: defaultAlgorithm,
  limit: { requests: COUNT_MAX, windowUs: 1_000_000, burst: COUNT_MAX, denyConsumes: true },
  hits: 1,
  veto: 'never',
  isPerSecond,
}))

type CountAll = (updates: readonly CounterUpdate[]) => Promise<readonly Decision[]>

/** Creates the store; it sends nothing before the first call. */
export function createRedisCounterStore(options: RedisCounterStoreOptions): RedisCounterStore {
  const { connection, perSecond } = options
  const connections = perSecond === undefined ? [connection] : [connection, perSecond]
  const countMain = countOn(connection, options)
  const countAll: CountAll =
    perSecond === undefined
      ? countMain
      : routed([countMain, countOn(perSecond, options)], options.onFailure)
  return {
    consume: (updates) => (updates.length === 0 ? Promise.resolve([]) : countAll(updates)),
    async reset(updates) {
      const timeoutError = () =>
        new StoreError('Redis did not remove the counters', { outcome: 'unknown' })
      for (const server of connections) {
        const isHere = ({ isPerSecond }: CounterUpdate) =>
          (isPerSecond ? (perSecond ?? connection) : connection) === server
        const keys = updates.filter(isHere).map(({ key }) => options.keyPrefix + key)
        const groups = server.isCluster ? keys.map((key) => [key]) : [keys]
        for (const group of groups.filter(({ length }) => length > 0)) {
          const removed = server.del(group).catch((cause: unknown) => {
            throw new StoreError('Redis cannot remove the counters', { outcome: 'unknown', cause })
          })
          await within(connection.timeoutMs, removed, timeoutError)
        }
      }
    },
    async probe() {
      await Promise.all(connections.map(ping))
      const timeoutError = () => new StoreError('Redis did not count', { outcome: 'unknown' })
      await within(connection.timeoutMs, countAll(probes), timeoutError)
    },
    close() {
      for (const each of connections) each.close()
    },
  }
}

function countOn(connection: RedisConnection, options: RedisCounterStoreOptions): CountAll {
  const { keyPrefix, onFailure } = options
  const batches = traceBatches(createBatches({ ...options, connection }))
  if (!connection.isCluster) return (updates) => batches.add(0, updates)
  const groupOf = ({ key }: CounterUpdate) => keySlot(keyPrefix + key)
  const countGroup: CountGroup = (slot, updates) => batches.add(slot, updates)
  return (updates) => countInGroups(updates, { groupOf, countGroup, onFailure })
}

/** Sends per-second updates to the second Redis, all others to the first. */
function routed(
  servers: readonly [CountAll, CountAll],
  onFailure: RedisCounterStoreOptions['onFailure'],
): CountAll {
  const groupOf = ({ isPerSecond }: CounterUpdate) => (isPerSecond ? 1 : 0)
  const countGroup: CountGroup = (group, updates) => servers[group === 1 ? 1 : 0](updates)
  return (updates) => countInGroups(updates, { groupOf, countGroup, onFailure })
}

type CountGroup = (group: number, updates: readonly CounterUpdate[]) => Promise<readonly Decision[]>

/** Counts each group concurrently; returns the decisions in the order of the updates. */
async function countInGroups(
  updates: readonly CounterUpdate[],
  {
    groupOf,
    countGroup,
    onFailure,
  }: {
    groupOf: (update: CounterUpdate) => number
    countGroup: CountGroup
    onFailure: RedisCounterStoreOptions['onFailure']
  },
): Promise<readonly Decision[]> {
  const placesOf = new Map<number, number[]>()
  updates.forEach((update, place) => {
    const group = groupOf(update)
    const places = placesOf.get(group)
    if (places === undefined) placesOf.set(group, [place])
    else places.push(place)
  })
  const decisions: Decision[] = new Array<Decision>(updates.length)
  const runGroup = async ([group, places]: readonly [number, number[]]) => {
    const groupUpdates = places.flatMap((place) => updates[place] ?? [])
    const counted = asSubset(groupUpdates, updates)
    const decided = await countGroup(group, counted)
    decided.forEach((decision, at) => {
      decisions[places[at] ?? 0] = decision
    })
    return { group, places, updates: counted, decisions: decided }
  }
  const groups = await Promise.all([...placesOf].map(runGroup))
  if (groups.length === 1 || !isDenied(updates, decisions)) return decisions
  for (const counted of groups) {
    const refunds = refundsOf(counted, decisions)
    // Neither awaited nor retried: hits that are not refunded count until they expire.
    if (refunds.length > 0) countGroup(counted.group, refunds).catch(onFailure ?? (() => undefined))
  }
  return decisions
}

async function ping(connection: RedisConnection): Promise<void> {
  const { timeoutMs } = connection
  const timeoutError = () =>
    new StoreError(`Redis did not respond to a PING in ${timeoutMs} ms`, { outcome: 'not-done' })
  const ponged = connection.ping().catch((cause: unknown) => {
    throw new StoreError('Redis did not respond to a PING', { outcome: 'not-done', cause })
  })
  await within(timeoutMs, ponged, timeoutError)
}
