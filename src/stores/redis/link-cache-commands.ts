// Sends the link cache's commands. The reads of one event-loop turn share a command, and so do the
// deletions; on a Cluster, each has its own. Every command has a deadline; a circuit breaker stops
// them while Redis is down.
import { createHash } from 'node:crypto'
import { createCircuitBreaker } from '../../resilience/circuit-breaker.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import type { RedisConnection } from './connection.ts'
import { keyOf } from './link-cache-entry.ts'
import type { LinkCacheCommands } from './link-cache.ts'
import { readLua } from './read-lua.ts'

/** The deadline of a command; its result is discarded after that. */
export const COMMAND_MS_MAX = 50

/** The maximum number of keys that share a command. */
const KEYS_MAX = 128

/** With this many calls in flight, further calls fail immediately. */
export const CALLS_IN_FLIGHT_MAX = 10_000

/** Commands behind a circuit breaker. */
export interface CommandsWithBreaker extends LinkCacheCommands {
  /** Whether the circuit breaker is open. */
  isOpen(): boolean
  /** Stops the probes. */
  stop(): Promise<void>
}

/** Options of the commands. */
export interface LinkCacheCommandsOptions {
  readonly connection: RedisConnection
  readonly metrics: Pick<Metrics, 'linkCacheFailures' | 'linkCacheUnavailable'>
  /** The deadline of a command. @default COMMAND_MS_MAX */
  readonly commandMsMax?: number | undefined
}

const fillScript = readLua('link-cache-fill')
const fillScriptSha = createHash('sha1').update(fillScript).digest('hex')

/** Creates the commands of one connection. */
export function createLinkCacheCommands(options: LinkCacheCommandsOptions): CommandsWithBreaker {
  const { connection, metrics } = options
  const breaker = createCircuitBreaker({
    // A write: a replica responds to PING but rejects writes.
    probe: () => connection.del([keyOf('')]),
    callMsMax: options.commandMsMax ?? COMMAND_MS_MAX,
    nowMs: () => performance.now(),
    onFailure(reason) {
      const isError = reason !== 'timeout' && reason !== 'unavailable'
      metrics.linkCacheFailures.inc({ reason: isError ? 'error' : reason })
    },
    onOpenChange(isOpen) {
      metrics.linkCacheUnavailable.set(isOpen ? 1 : 0)
    },
  })
  metrics.linkCacheUnavailable.set(0)
  const limit = createCallLimit()
  const guarded = async <T>(outcome: FailedOutcome, call: () => Promise<T>): Promise<T> => {
    const reply = await breaker.run(() => (connection.isUp() ? call() : notConnected()))
    if (reply !== undefined) return reply
    throw new StoreError('the link cache is unavailable', { outcome })
  }
  const read = <T>(call: () => Promise<T>) => guarded('not-done', call)
  const write = <T>(call: () => Promise<T>) => guarded('unknown', call)
  const getOne = async (key: string) => {
    const { value } = await read(() => connection.get(key).then(wrapped))
    return value
  }
  const delOne = (key: string) => write(() => connection.del([key]))
  const { bounded } = limit
  const [get, del] = connection.isCluster
    ? [bounded(getOne), bounded<string, unknown>(delOne)]
    : [
        batched(limit, (keys) => read(() => connection.mget(keys))),
        batched(limit, (keys) => write(() => connection.del(keys).then(() => []))),
      ]
  return {
    get,
    putIfAbsent: bounded((entry) => write(() => connection.putIfAbsent(entry))),
    replace: bounded((entry) => write(() => replace(connection, entry))),
    del,
    isOpen: () => breaker.isOpen(),
    stop: () => breaker.stop(),
  }
}

const wrapped = (value: string | null) => ({ value })

function notConnected(): Promise<never> {
  return Promise.reject(new StoreError('Redis is not connected', { outcome: 'not-done' }))
}

async function replace(
  connection: RedisConnection,
  { key, from, value, ms }: Parameters<LinkCacheCommands['replace']>[0],
): Promise<boolean> {
  const args = ['1', key, Buffer.from(from, 'latin1'), value, String(ms)]
  const reply = connection.evalsha(fillScriptSha, args).catch((error: unknown) => {
    const isUnknown = error instanceof Error && error.message.startsWith('NOSCRIPT')
    if (!isUnknown) throw error
    return connection.eval(fillScript, args)
  })
  return (await reply) === 1
}

type CallLimit = ReturnType<typeof createCallLimit>

/** Counts the calls in flight and rejects more than CALLS_IN_FLIGHT_MAX. */
function createCallLimit() {
  let inFlight = 0
  const limit = {
    /** Counts a call. Throws StoreError if too many are in flight. */
    start() {
      if (inFlight >= CALLS_IN_FLIGHT_MAX) {
        const message = `${inFlight} calls are already waiting for the link cache`
        throw new StoreError(message, { outcome: 'not-done' })
      }
      inFlight++
    },
    /** Counts calls as complete. */
    complete(count: number) {
      inFlight -= count
    },
    /** Wraps a function so that its calls are counted. */
    bounded:
      <A, T>(call: (input: A) => Promise<T>) =>
      async (input: A): Promise<T> => {
        limit.start()
        try {
          return await call(input)
        } finally {
          limit.complete(1)
        }
      },
  }
  return limit
}

interface Waiting {
  readonly resolve: (value: string | null) => void
  readonly reject: (error: unknown) => void
}

/** Batches the keys of one turn into one command; a missing value of its reply counts as `null`. */
function batched(
  limit: CallLimit,
  sendAll: (keys: readonly string[]) => Promise<readonly (string | null)[]>,
) {
  let keys: string[] = []
  let waiting: Waiting[] = []
  const send = () => {
    const [sentKeys, callers] = [keys, waiting]
    keys = []
    waiting = []
    if (sentKeys.length === 0) return
    sendAll(sentKeys).then(
      (values) => {
        limit.complete(callers.length)
        for (let i = 0; i < callers.length; i++) callers[i]?.resolve(values[i] ?? null)
      },
      (error: unknown) => {
        limit.complete(callers.length)
        for (const { reject } of callers) reject(error)
      },
    )
  }
  return (key: string) =>
    new Promise<string | null>((resolve, reject) => {
      limit.start()
      if (keys.length === 0) setImmediate(send)
      keys.push(key)
      waiting.push({ resolve, reject })
      if (keys.length === KEYS_MAX) send()
    })
}
