// Stores of counters on the tests' own servers, and charges to put on them.
import type { Algorithm, Decision, Limit } from '../../src/limits/algorithm.ts'
import { algorithms } from '../../src/limits/algorithms.ts'
import type { CounterCharge } from '../../src/limits/counter-store.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import {
  connectRedis,
  type RedisConnection,
  type RedisConnectionOptions,
} from '../../src/stores/redis/connection.ts'
import {
  createRedisCounterStore,
  type RedisCounterStore,
} from '../../src/stores/redis/counter-store.ts'
import { waitFor } from './wait-for.ts'

/** A store, its connection, and what the connection told of itself. */
export interface UsedStore {
  readonly store: RedisCounterStore
  readonly connection: RedisConnection
  readonly told: string[]
}

/** Opens a store on a server of the loopback; does not wait for it. */
export function useStore(port: number, options: Partial<RedisConnectionOptions> = {}): UsedStore {
  const told: string[] = []
  const watch = { onDown: () => told.push('down'), onUp: () => told.push('up') }
  const target = { kind: 'single' as const, host: '127.0.0.1', port }
  const connection = connectRedis({ target, database: 0, timeoutMs: 1000, ...options }, watch)
  return { store: createRedisCounterStore({ connection, keyPrefix: 'c:' }), connection, told }
}

/** The same, once it is connected. */
export async function useReadyStore(
  port: number,
  options: Partial<RedisConnectionOptions> = {},
): Promise<UsedStore> {
  const used = useStore(port, options)
  await waitFor('the connection', () => used.connection.isUp())
  return used
}

let keysMade = 0

/** A charge of one hit to a counter of its own, of 10 hits an hour. */
export function newCharge(
  name = 'token_bucket',
  { key = `counter ${String(keysMade++)}`, ...limit }: Partial<Limit> & { key?: string } = {},
): CounterCharge {
  return {
    key,
    algorithm: algorithmOf(name),
    limit: { requests: 10, windowUs: 3_600_000_000, burst: 10, denyConsumes: false, ...limit },
    cost: 1,
    veto: 'alone',
    isPerSecond: false,
  }
}

function algorithmOf(name: string): Algorithm {
  const algorithm = algorithms.find((one) => one.name === name)
  if (algorithm === undefined) throw new Error(`there is no ${name}`)
  return algorithm
}

/** The decision of a charge that is alone in its call. */
export async function chargeOne(
  store: RedisCounterStore,
  charge: CounterCharge,
): Promise<Decision> {
  const [decision] = await store.charge([charge])
  if (decision === undefined) throw new Error('there is no decision')
  return decision
}

/** The StoreError that a call ends with, and how long it took. */
export async function failureOf(
  charging: Promise<unknown>,
): Promise<{ error: StoreError; tookMs: number }> {
  const beganMs = performance.now()
  try {
    await charging
  } catch (error) {
    if (error instanceof StoreError) return { error, tookMs: performance.now() - beganMs }
    throw error
  }
  throw new Error('the call did not fail')
}

/** Resolves once a charge is made; gives how long that took. */
export async function timeToCharge(store: RedisCounterStore): Promise<number> {
  const beganMs = performance.now()
  await waitFor('a charge that is made', () =>
    store.charge([newCharge()]).then(
      () => true,
      () => false,
    ),
  )
  return performance.now() - beganMs
}
