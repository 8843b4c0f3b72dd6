// Counters in Redis. The calls of one turn of the event loop go out as one script, which makes them
// one after the other; each is all or nothing. On Redis Cluster that holds for the keys of one hash
// slot, and with a Redis for seconds for those of one Redis: a call is then several, side by side,
// and what a denied call has taken in the others is refunded.
import { COUNT_MAX, type Decision } from '../../limits/algorithm.ts'
import { type CounterCharge, type CounterStore, partOf } from '../../limits/counter-store.ts'
import { isDenied } from '../../limits/decide-together.ts'
import { fixedWindow } from '../../limits/fixed-window.ts'
import { within } from '../../process/deadline.ts'
import { StoreError } from '../../process/store-error.ts'
import { createBatches } from './batches.ts'
import type { RedisConnection } from './connection.ts'
import { keySlot } from './key-slot.ts'
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
      : inGroups(
          ({ isPerSecond }) => (isPerSecond ? 1 : 0),
          [chargeMain, chargesOf(perSecond, options)],
        )
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
  const { keyPrefix } = options
  const batches = traceBatches(createBatches({ ...options, connection }))
  if (!connection.isCluster) return (charges) => batches.add(0, charges)
  const slotOf = ({ key }: CounterCharge) => keySlot(keyPrefix + key)
  return (charges) =>
    splitUp({ charges, groupOf: slotOf, chargeGroup: (slot, part) => batches.add(slot, part) })
}

function inGroups(groupOf: (charge: CounterCharge) => 0 | 1, pools: [ChargeAll, ChargeAll]) {
  const chargeGroup = (group: number, charges: readonly CounterCharge[]) =>
    pools[group === 1 ? 1 : 0](charges)
  return (charges: readonly CounterCharge[]) => splitUp({ charges, groupOf, chargeGroup })
}

/** Charges each group on its own, all at once; the decisions in the order of the charges. */
async function splitUp(given: {
  charges: readonly CounterCharge[]
  groupOf: (charge: CounterCharge) => number
  chargeGroup: (group: number, charges: readonly CounterCharge[]) => Promise<readonly Decision[]>
}): Promise<readonly Decision[]> {
  const { charges, groupOf, chargeGroup } = given
  const placesOf = new Map<number, number[]>()
  charges.forEach((charge, place) => {
    const group = groupOf(charge)
    const places = placesOf.get(group)
    if (places === undefined) placesOf.set(group, [place])
    else places.push(place)
  })
  const decisions: Decision[] = new Array<Decision>(charges.length)
  const chargePart = async ([group, places]: readonly [number, number[]]): Promise<Part> => {
    const whole = places.flatMap((place) => charges[place] ?? [])
    const part = partOf(whole, charges)
    const decided = await chargeGroup(group, part)
    decided.forEach((decision, at) => {
      decisions[places[at] ?? 0] = decision
    })
    return { group, places, charges: part, decisions: decided }
  }
  const parts = await Promise.all([...placesOf].map(chargePart))
  if (parts.length > 1 && isDenied(charges, decisions)) {
    for (const part of parts) refund(part, given.chargeGroup, decisions)
  }
  return decisions
}

/** The charges of one group, as they were made. */
interface Part {
  readonly group: number
  readonly places: readonly number[]
  readonly charges: readonly CounterCharge[]
  readonly decisions: readonly Decision[]
}

/** Refunds what a part has taken of a call that another denied, and corrects `decisions`. */
function refund(
  { group, places, charges, decisions: decided }: Part,
  chargeGroup: (group: number, charges: readonly CounterCharge[]) => Promise<unknown>,
  decisions: Decision[],
): void {
  if (isDenied(charges, decided)) return // it has taken nothing
  const refunds = charges.flatMap((charge, at): CounterCharge[] => {
    const [decision, place] = [decided[at], places[at]]
    if (decision?.admitted !== true || place === undefined) return []
    if (charge.cost <= 0 || charge.limit.denyConsumes) return []
    decisions[place] = { ...decision, remaining: decision.remaining + charge.cost }
    return [{ ...charge, cost: -charge.cost, veto: 'never' }]
  })
  if (refunds.length === 0) return
  // Nothing waits for it, nor tries it twice: hits that are not refunded count until they expire.
  chargeGroup(group, refunds).catch(() => undefined)
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
