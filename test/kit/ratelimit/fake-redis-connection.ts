// A connection to Redis without a server: records the scripts that it is sent. By default, each
// counter admits its hits and has as many left as the number at the end of its key.
import type { RedisConnection } from '../../../src/stores/redis/connection.ts'
import type { RetryOptions } from '../../../src/stores/redis/retry-commands.ts'

/** A script as it was sent. */
interface SentScript {
  readonly command: 'evalsha' | 'eval'
  readonly script: string
  readonly keys: readonly string[]
  /** All arguments, with the number of keys and the keys. */
  readonly args: readonly string[]
  readonly retry: RetryOptions | undefined
}

/** The connection. */
export interface FakeRedisConnection {
  readonly connection: RedisConnection
  readonly sent: SentScript[]
  /** Calls of the other commands, such as `del a,b`. */
  readonly called: string[]
  isUp: boolean
  /** Responds to a script. */
  respond: (script: SentScript) => Promise<unknown>
  /** Responds to other commands. */
  reply: (command: string) => Promise<unknown>
}

/** Opens the connection. */
export function openFakeRedis(isCluster = false): FakeRedisConnection {
  const run =
    (command: SentScript['command']) =>
    (script: string, args: readonly (string | Buffer)[], retry?: RetryOptions) => {
      const all = args.map(String)
      const one = { command, script, keys: all.slice(1, 1 + Number(all[0])), args: all, retry }
      fake.sent.push(one)
      return fake.respond(one)
    }
  const call = (command: string) => {
    fake.called.push(command)
    return fake.reply(command)
  }
  const fake: FakeRedisConnection = {
    connection: {
      ...{ isCluster, timeoutMs: 100, isUp: () => fake.isUp },
      ...{ evalsha: run('evalsha'), eval: run('eval') },
      ping: () => call('ping'),
      get: (key: string) => call(`get ${key}`),
      mget: (keys: readonly string[]) => call(`mget ${keys.join()}`),
      del: (keys: readonly string[]) => call(`del ${keys.join()}`),
      putIfAbsent: ({ key, value, ms }: { key: string; value: string; ms: number }) =>
        call(`set ${key} ${value} ${ms}`),
      close: () => void fake.called.push('close'),
    } as Partial<RedisConnection> as RedisConnection,
    ...{ sent: [], called: [], isUp: true },
    respond: ({ keys }) => Promise.resolve(admitted(keys)),
    reply: () => Promise.resolve(1),
  }
  return fake
}

/** The reply to a script whose counters admit their hits. */
export function admitted(keys: readonly string[]): readonly number[] {
  const decisions = keys.flatMap((key) => [Number(/\d*$/.exec(key)?.[0]), 700_000, 0, 0])
  return [...decisions, 99]
}
