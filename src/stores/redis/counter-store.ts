// Counters in Redis. The calls of one turn of the event loop go out as one script, which makes them
// one after the other; each is all or nothing. On Redis Cluster that holds for the keys of one hash
// slot, and with a Redis for seconds for those of one Redis: a call is then several, side by side,
// and what a denied call has taken in the others is refunded.
import { COUNT_MAX, type Decision } from '../../limits/algorithm.ts'
import { type CounterCharge, type CounterStore, partOf } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { within } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { createBatches } from './batches.ts'
import type { RedisConnection } from './connection.ts'
import { keySlot } from './key-slot.ts'
import { refundsOf } from './refunds.ts'
import { traceBatches } from './trace-commands.ts'

/** Counters in Redis. */
export interface RedisCounterStore extends CounterStore {
  /** Resolves if every Redis of the store answers and counts now. Throws StoreError. */
  probe(): Promise<void>
  /** Closes the connections; what is under way fails with StoreError. */
  close(): void
}

/** What the store works with. */
export interface RedisCounterStoreOptions {
  readonly connection: RedisConnection
  /** For charges with `isPerSecond`; where absent they go the way of the others. */
  readonly perSecond?: RedisConnection | undefined
  /** Put before each key. */
  readonly keyPrefix: string
  /** Told of what nobody waits for: refunds that Redis did not make. */
  readonly onFailure?: ((error: unknown) => void) | undefined
  /** In place of Redis's clock, in microseconds: for tests of equality only. */
  readonly nowUs?: (() => number) | undefined
}

/** A Redis that answers may refuse to count, as one without memory does: so each counts a hit. */
const probes: readonly CounterCharge[] = [true, false].map((isPerSecond) => ({
  key: 'probe',
  algorithm: fixedWindow,
  limit: { requests: COUNT_MAX, windowUs: 1_000_000, burst: COUNT_MAX, denyConsumes: true },
  cost: 1,
  veto: 'never',
  isPerSecond,
}))

type ChargeAll = (charges: readonly CounterCharge[]) => Promise<readonly Decision[]>

/** Makes the store; nothing is sent before the first call. */
export function createRedisCounterStore(options: RedisCounterStoreOptions): RedisCounterStore {
  const { connection, perSecond } = options
  const connections = perSecond === undefined ? [connection] : [connection, perSecond]
  const chargeMain = chargesOf(connection, options)
  const charge: ChargeAll =
    perSecond === undefined
      ? chargeMain
      : inGroups([chargeMain, chargesOf(perSecond, options)], options.onFailure)
  return {
    charge: (charges) => (charges.length === 0 ? Promise.resolve([]) : charge(charges)),
    async probe() {
      await Promise.all(connections.map(ping))
      const late = () => new StoreError('Redis did not count', { outcome: 'unknown' })
      await within(connection.timeoutMs, charge(probes), late)
    },
    close() {
      for (const one of connections) one.close()
    },
  }
}

function chargesOf(connection: RedisConnection, options: RedisCounterStoreOptions): ChargeAll {
  const { keyPrefix, onFailure } = options
  const batches = traceBatches(createBatches({ ...options, connection }))
  if (!connection.isCluster) return (charges) => batches.add(0, charges)
  const groupOf = ({ key }: CounterCharge) => keySlot(keyPrefix + key)
  const chargeGroup: ChargeGroup = (slot, part) => batches.add(slot, part)
  return (charges) => splitUp(charges, { groupOf, chargeGroup, onFailure })
}

function inGroups(
  pools: readonly [ChargeAll, ChargeAll],
  onFailure: RedisCounterStoreOptions['onFailure'],
): ChargeAll {
  const groupOf = ({ isPerSecond }: CounterCharge) => (isPerSecond ? 1 : 0)
  const chargeGroup: ChargeGroup = (group, charges) => pools[group === 1 ? 1 : 0](charges)
  return (charges) => splitUp(charges, { groupOf, chargeGroup, onFailure })
}

type ChargeGroup = (
  group: number,
  charges: readonly CounterCharge[],
) => Promise<readonly Decision[]>

/** Charges each group on its own, all at once; the decisions in the order of the charges. */
async function splitUp(
  charges: readonly CounterCharge[],
  {
    groupOf,
    chargeGroup,
    onFailure,
  }: {
    groupOf: (charge: CounterCharge) => number
    chargeGroup: ChargeGroup
    onFailure: RedisCounterStoreOptions['onFailure']
  },
): Promise<readonly Decision[]> {
  const placesOf = new Map<number, number[]>()
  charges.forEach((charge, place) => {
    const group = groupOf(charge)
    const places = placesOf.get(group)
    if (places === undefined) placesOf.set(group, [place])
    else places.push(place)
  })
  const decisions: Decision[] = new Array<Decision>(charges.length)
  const chargePart = async ([group, places]: readonly [number, number[]]) => {
    const whole = places.flatMap((place) => charges[place] ?? [])
    const part = partOf(whole, charges)
    const decided = await chargeGroup(group, part)
    decided.forEach((decision, at) => {
      decisions[places[at] ?? 0] = decision
    })
    return { group, places, charges: part, decisions: decided }
  }
  const parts = await Promise.all([...placesOf].map(chargePart))
  if (parts.length === 1 || !isDenied(charges, decisions)) return decisions
  for (const part of parts) {
    const refunds = refundsOf(part, decisions)
    // Nothing waits for it, nor tries it twice: hits that are not refunded count until they expire.
    if (refunds.length > 0) chargeGroup(part.group, refunds).catch(onFailure ?? (() => undefined))
  }
  return decisions
}

async function ping(connection: RedisConnection): Promise<void> {
  const { timeoutMs } = connection
  const late = () =>
    new StoreError(`Redis did not answer a PING in ${timeoutMs} ms`, { outcome: 'not-done' })
  const answered = connection.ping().catch((cause: unknown) => {
    throw new StoreError('Redis did not answer a PING', { outcome: 'not-done', cause })
  })
  await within(timeoutMs, answered, late)
}
