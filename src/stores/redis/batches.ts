// Batches the calls of one event-loop turn into one script per hash slot, and returns each call's
// decisions. Bounds: updates per script, calls in flight, and time.
import type { Decision } from '../../limits/algorithm.ts'
import { within } from '../../resilience/deadline.ts'
import { messageOf } from '../../resilience/message-of.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { type Call, decodeReply, encodeCalls } from './count-wire.ts'
import type { RedisConnection } from './connection.ts'
import { countScript, countScriptSha } from './script.ts'

/** A batch with this many updates is sent immediately. */
const BATCH_SIZE_MAX = 128

/** With this many calls in flight, further calls fail immediately. */
export const CALLS_IN_FLIGHT_MAX = 10_000

interface PendingCall {
  readonly call: Call
  readonly resolve: (decisions: readonly Decision[]) => void
  readonly reject: (error: StoreError) => void
}

interface Batch {
  size: number
  /** Whether the batch may be sent twice; calls with refunds have their own batches. */
  readonly isRetryable: boolean
  readonly pending: PendingCall[]
}

/** Sends calls in batches. */
export interface Batches {
  /** Counts the hits of one call, whose keys all have this hash slot. Throws StoreError. */
  add(slot: number, call: Call): Promise<readonly Decision[]>
}

/** Creates the batches of one connection. */
export function createBatches(options: {
  readonly connection: RedisConnection
  readonly keyPrefix: string
  readonly nowUs?: (() => number) | undefined
}): Batches {
  const { connection, keyPrefix, nowUs } = options
  let batches = new Map<number, Batch>()
  let inFlight = 0

  const send = async ({ pending, isRetryable }: Batch) => {
    const calls = pending.map(({ call }) => call)
    try {
      const args = encodeCalls(calls, { keyPrefix, nowUs: nowUs?.() })
      const decisions = decodeReply(await runScript(connection, { args, isRetryable }), calls)
      pending.forEach(({ resolve }, at) => {
        resolve(decisions[at] ?? [])
      })
    } catch (error) {
      const failed = error instanceof StoreError ? error : invalidReply(error)
      for (const { reject } of pending) reject(failed)
    } finally {
      inFlight -= pending.length
    }
  }
  const flush = () => {
    const ready = batches
    batches = new Map() // not cleared: a Map's former table keeps its entries alive
    for (const batch of ready.values()) void send(batch)
  }
  const enqueue = (slot: number, pending: PendingCall) => {
    // A refund that is executed twice would erase the hits of other clients.
    const isRetryable = pending.call.every(({ hits }) => hits >= 0)
    const key = isRetryable ? slot : -1 - slot
    let batch = batches.get(key)
    if (batch === undefined) {
      if (batches.size === 0) setImmediate(flush)
      batch = { size: 0, pending: [], isRetryable }
      batches.set(key, batch)
    }
    batch.pending.push(pending)
    batch.size += pending.call.length
    if (batch.size < BATCH_SIZE_MAX) return
    batches.delete(key)
    void send(batch)
  }
  return {
    add(slot, call) {
      if (inFlight >= CALLS_IN_FLIGHT_MAX) {
        const message = `${inFlight} calls are already waiting for Redis`
        return Promise.reject(new StoreError(message, { outcome: 'not-done' }))
      }
      inFlight++
      return new Promise((resolve, reject) => {
        enqueue(slot, { call, resolve, reject })
      })
    },
  }
}

/** Runs the script by its SHA; on NOSCRIPT sends its source. Throws StoreError. */
async function runScript(
  connection: RedisConnection,
  { args, isRetryable }: { readonly args: readonly string[]; readonly isRetryable: boolean },
): Promise<unknown> {
  if (!connection.isUp()) throw new StoreError('Redis is not connected', { outcome: 'not-done' })
  const { timeoutMs } = connection
  const retry = { isRetryable, startedMs: performance.now() }
  const timeoutError = () =>
    new StoreError(`Redis did not respond within ${timeoutMs} ms`, { outcome: 'unknown' })
  const reply = connection
    .evalsha(countScriptSha, args, retry)
    .catch((error: unknown) => {
      const isTimedOut = performance.now() - retry.startedMs >= timeoutMs
      if (isTimedOut || !isUnknownScript(error)) throw error
      return connection.eval(countScript, args, retry)
    })
    .catch((cause: unknown) => {
      const message = `Redis did not count the hits: ${messageOf(cause)}`
      throw new StoreError(message, { outcome: 'unknown', cause })
    })
  return within(timeoutMs, reply, timeoutError)
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}

function invalidReply(cause: unknown): StoreError {
  return new StoreError('Redis returned an invalid decision', { outcome: 'unknown', cause })
}
