// Gathers the calls of one turn of the event loop into scripts, one for each hash slot, and gives
// each call its own decisions. Bounded: in charges of a script, in calls under way and in time.
import type { Decision } from '../../limits/algorithm.ts'
import { within } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { type Call, decodeReply, encodeCalls } from './charge-wire.ts'
import type { RedisConnection } from './connection.ts'
import { chargeScript, chargeScriptSha } from './script.ts'

/** A script is sent without waiting for more calls once it holds so many charges. */
const BATCH_CHARGES_MAX = 128

/** With so many calls unanswered, a further one fails at once. */
export const CALLS_UNDER_WAY_MAX = 10_000

interface Waiting {
  readonly call: Call
  readonly resolve: (decisions: readonly Decision[]) => void
  readonly reject: (error: StoreError) => void
}

interface Batch {
  charges: number
  readonly waiting: Waiting[]
}

/** Calls on their way. */
export interface Batches {
  /** Makes the charges of one call, whose keys are all of this hash slot. Throws StoreError. */
  add(slot: number, call: Call): Promise<readonly Decision[]>
}

/** Makes the batches of one connection. */
export function createBatches(options: {
  readonly connection: RedisConnection
  readonly keyPrefix: string
  readonly nowUs?: (() => number) | undefined
}): Batches {
  const { connection, keyPrefix, nowUs } = options
  const batches = new Map<number, Batch>()
  let underWay = 0

  const send = async ({ waiting }: Batch) => {
    const calls = waiting.map(({ call }) => call)
    try {
      const args = encodeCalls(calls, { keyPrefix, nowUs: nowUs?.() })
      const decisions = decodeReply(await runScript(connection, args), calls)
      waiting.forEach(({ resolve }, at) => {
        resolve(decisions[at] ?? [])
      })
    } catch (error) {
      const failed = error instanceof StoreError ? error : unreadable(error)
      for (const { reject } of waiting) reject(failed)
    } finally {
      underWay -= waiting.length
    }
  }
  const flush = () => {
    const ready = [...batches.values()]
    batches.clear()
    for (const batch of ready) void send(batch)
  }
  const put = (slot: number, waiting: Waiting) => {
    let batch = batches.get(slot)
    if (batch === undefined) {
      if (batches.size === 0) setImmediate(flush)
      batch = { charges: 0, waiting: [] }
      batches.set(slot, batch)
    }
    batch.waiting.push(waiting)
    batch.charges += waiting.call.length
    if (batch.charges < BATCH_CHARGES_MAX) return
    batches.delete(slot)
    void send(batch)
  }
  return {
    add(slot, call) {
      if (underWay >= CALLS_UNDER_WAY_MAX) {
        const message = `${underWay} calls wait for Redis already`
        return Promise.reject(new StoreError(message, { outcome: 'not-done' }))
      }
      underWay++
      return new Promise((resolve, reject) => {
        put(slot, { call, resolve, reject })
      })
    },
  }
}

/** Runs the script; sends it whole where Redis does not know it. Throws StoreError. */
async function runScript(connection: RedisConnection, args: readonly string[]): Promise<unknown> {
  if (!connection.isUp()) throw new StoreError('Redis is not connected', { outcome: 'not-done' })
  const { timeoutMs } = connection
  const late = () =>
    new StoreError(`Redis did not answer in ${timeoutMs} ms`, { outcome: 'unknown' })
  const answer = connection
    .evalsha(chargeScriptSha, args)
    .catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error
      return connection.eval(chargeScript, args)
    })
    .catch((cause: unknown) => {
      throw new StoreError(messageOf(cause), { outcome: 'unknown', cause })
    })
  return within(timeoutMs, answer, late)
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}

function messageOf(cause: unknown): string {
  return `Redis did not make the charges: ${cause instanceof Error ? cause.message : String(cause)}`
}

function unreadable(cause: unknown): StoreError {
  return new StoreError('Redis answered what is no decision', { outcome: 'unknown', cause })
}
