// Sends the commands of the link cache: the reads of one turn of the event loop together, and so
// the deletions; each with a deadline, and none while Redis does not answer. Bounded in calls.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createGuard } from '../../resilience/guard.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type FailedOutcome, StoreError } from '../../resilience/store-error.ts'
import type { RedisConnection } from './connection.ts'
import { keyOf } from './link-cache-entry.ts'
import type { LinkCacheCommands } from './link-cache.ts'

/** A command is given up after so long, and so is what it was to tell. */
export const COMMAND_MS_MAX = 50

/** Keys that share a command. */
const KEYS_MAX = 128

/** With so many commands unanswered, a further one fails at once. */
export const UNDER_WAY_MAX = 10_000

/** Commands that can be sent, and how Redis fares. */
export interface GuardedCommands extends LinkCacheCommands {
  /** Whether Redis is left alone until it answers again. */
  isAway(): boolean
  /** Ends the probing. */
  stop(): Promise<void>
}

/** What sending needs. */
export interface LinkCacheCommandsOptions {
  readonly connection: RedisConnection
  readonly metrics: Pick<Metrics, 'linkCacheFailures' | 'linkCacheAway'>
  /** How long a command may take. @default COMMAND_MS_MAX */
  readonly commandMsMax?: number | undefined
}

const fillScript = readFileSync(new URL('link-cache-fill.lua', import.meta.url), 'utf8')
const fillScriptSha = createHash('sha1').update(fillScript).digest('hex')

/** Makes the commands of one connection. */
export function createLinkCacheCommands(options: LinkCacheCommandsOptions): GuardedCommands {
  const { connection, metrics } = options
  const guard = createGuard({
    // A write: a replica would answer a PING, and serve nobody.
    probe: () => connection.del([keyOf('')]),
    callMsMax: options.commandMsMax ?? COMMAND_MS_MAX,
    nowMs: () => performance.now(),
    onFailure(why) {
      metrics.linkCacheFailures.inc({ why: why === 'late' || why === 'away' ? why : 'error' })
    },
    onAway(isAway) {
      metrics.linkCacheAway.set(isAway ? 1 : 0)
    },
  })
  metrics.linkCacheAway.set(0)
  const calls = countCalls()
  const ask = async <T>(outcome: FailedOutcome, call: () => Promise<T>): Promise<T> => {
    const answer = await guard.ask(() => (connection.isUp() ? call() : notConnected()))
    if (answer !== undefined) return answer
    throw new StoreError('the link cache did not answer', { outcome })
  }
  const read = <T>(call: () => Promise<T>) => ask('not-done', call)
  const write = <T>(call: () => Promise<T>) => ask('unknown', call)
  const getAlone = async (key: string) => {
    const { value } = await read(() => connection.get(key).then(found))
    return value
  }
  const delAlone = (key: string) => write(() => connection.del([key]))
  const { bounded } = calls
  const [get, del] = connection.isCluster
    ? [bounded(getAlone), bounded<string, unknown>(delAlone)]
    : [
        together(calls, (keys) => read(() => connection.mget(keys))),
        together(calls, (keys) => write(() => connection.del(keys).then(() => []))),
      ]
  return {
    get,
    putIfAbsent: bounded((entry) => write(() => connection.putIfAbsent(entry))),
    replace: bounded((entry) => write(() => replace(connection, entry))),
    del,
    isAway: () => guard.isAway(),
    stop: () => guard.stop(),
  }
}

const found = (value: string | null) => ({ value })

function notConnected(): Promise<never> {
  return Promise.reject(new StoreError('Redis is not connected', { outcome: 'not-done' }))
}

async function replace(
  connection: RedisConnection,
  { key, from, value, ms }: Parameters<LinkCacheCommands['replace']>[0],
): Promise<boolean> {
  const args = ['1', key, Buffer.from(from, 'latin1'), value, String(ms)]
  const answer = connection.evalsha(fillScriptSha, args).catch((error: unknown) => {
    const isUnknown = error instanceof Error && error.message.startsWith('NOSCRIPT')
    if (!isUnknown) throw error
    return connection.eval(fillScript, args)
  })
  return (await answer) === 1
}

type Calls = ReturnType<typeof countCalls>

/** Counts the commands that are not answered, and refuses more than UNDER_WAY_MAX. */
function countCalls() {
  let underWay = 0
  const calls = {
    /** Counts one more. Throws StoreError where there are too many. */
    begin() {
      if (underWay >= UNDER_WAY_MAX) {
        const message = `${underWay} commands wait for the link cache already`
        throw new StoreError(message, { outcome: 'not-done' })
      }
      underWay++
    },
    end(count: number) {
      underWay -= count
    },
    bounded:
      <A, T>(call: (given: A) => Promise<T>) =>
      async (given: A): Promise<T> => {
        calls.begin()
        try {
          return await call(given)
        } finally {
          calls.end(1)
        }
      },
  }
  return calls
}

interface Waiting {
  readonly resolve: (value: string | null) => void
  readonly reject: (error: unknown) => void
}

/** Gathers the keys of one turn for one command; its answers are theirs in order, or `null`. */
function together(
  calls: Calls,
  askAll: (keys: readonly string[]) => Promise<readonly (string | null)[]>,
) {
  let keys: string[] = []
  let waiting: Waiting[] = []
  const send = () => {
    const [asked, askers] = [keys, waiting]
    keys = []
    waiting = []
    if (asked.length === 0) return
    askAll(asked).then(
      (values) => {
        calls.end(askers.length)
        for (let i = 0; i < askers.length; i++) askers[i]?.resolve(values[i] ?? null)
      },
      (error: unknown) => {
        calls.end(askers.length)
        for (const { reject } of askers) reject(error)
      },
    )
  }
  return (key: string) =>
    new Promise<string | null>((resolve, reject) => {
      calls.begin()
      if (keys.length === 0) setImmediate(send)
      keys.push(key)
      waiting.push({ resolve, reject })
      if (keys.length === KEYS_MAX) send()
    })
}
