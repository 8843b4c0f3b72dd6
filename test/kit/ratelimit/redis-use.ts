// Counter stores on the Redis servers of tests, and updates that they consume.
import type { Algorithm, Decision, Limit } from '../../../src/limits/algorithm.ts'
import { algorithms } from '../../../src/limits/algorithms.ts'
import type { CounterUpdate } from '../../../src/limits/counter-store.ts'
import { StoreError } from '../../../src/resilience/store-error.ts'
import {
  RECONNECT_MS_MAX,
  type RedisConnectionOptions,
} from '../../../src/stores/redis/connection-options.ts'
import { connectRedis, type RedisConnection } from '../../../src/stores/redis/connection.ts'
import {
  createRedisCounterStore,
  type RedisCounterStore,
} from '../../../src/stores/redis/counter-store.ts'
import { waitFor } from '../wait-for.ts'
import { durationWithoutPauses } from '../watch-pauses.ts'

/** How long commands wait for the next connection on a machine that is busy with other tests. */
export const reconnectMsMax = 5 * RECONNECT_MS_MAX

/** A store, its connection, and the events of the connection. */
export interface TestStore {
  readonly store: RedisCounterStore
  readonly connection: RedisConnection
  readonly events: string[]
}

/** Creates a store on a server of this machine; does not wait for the connection. */
export function createStore(
  port: number,
  options: Partial<RedisConnectionOptions> = {},
): TestStore {
  const events: string[] = []
  const watch = {
    onDown: (_: Error, level: string) => events.push(`down: ${level}`),
    onUp: () => events.push('up'),
  }
  const target = { kind: 'single' as const, host: '127.0.0.1', port }
  const connection = connectRedis({ target, database: 0, timeoutMs: 1000, ...options }, watch)
  return { store: createRedisCounterStore({ connection, keyPrefix: 'c:' }), connection, events }
}

/** Creates a store and waits until it is connected. Its timeout exceeds a pause of the machine. */
export async function openReadyStore(
  port: number,
  options: Partial<RedisConnectionOptions> = {},
): Promise<TestStore> {
  const opened = createStore(port, { timeoutMs: 5000, ...options })
  await waitFor('the connection', () => opened.connection.isUp())
  return opened
}

let counters = 0

/** An update of one hit on a new counter with a limit of 10 hits an hour. */
export function newUpdate(
  name = 'token_bucket',
  { key = `counter ${String(counters++)}`, ...limit }: Partial<Limit> & { key?: string } = {},
): CounterUpdate {
  return {
    key,
    algorithm: algorithmOf(name),
    limit: { requests: 10, windowUs: 3_600_000_000, burst: 10, denyConsumes: false, ...limit },
    hits: 1,
    veto: 'alone',
    isPerSecond: false,
  }
}

function algorithmOf(name: string): Algorithm {
  const algorithm = algorithms.find((one) => one.name === name)
  if (algorithm === undefined) throw new Error(`unknown algorithm ${name}`)
  return algorithm
}

/** The decision of a call with one update. */
export async function consumeOne(
  store: RedisCounterStore,
  update: CounterUpdate,
): Promise<Decision> {
  const [decision] = await store.consume([update])
  if (decision === undefined) throw new Error('the call returned no decision')
  return decision
}

/** The StoreError of a call that must fail, and its duration without a pause of this process. */
export async function failureOf(
  call: Promise<unknown>,
): Promise<{ error: StoreError; tookMs: number }> {
  let failure: unknown
  const tookMs = await durationWithoutPauses(() =>
    call.catch((error: unknown) => {
      failure = error
    }),
  )
  if (failure instanceof StoreError) return { error: failure, tookMs }
  throw new Error('the call did not fail with a StoreError', { cause: failure })
}

/** Waits until the store consumes an update. Returns the duration in ms. */
export async function timeToRecovery(store: RedisCounterStore): Promise<number> {
  const startedMs = performance.now()
  await waitFor('the recovery of the store', () =>
    store.consume([newUpdate()]).then(
      () => true,
      () => false,
    ),
  )
  return performance.now() - startedMs
}
