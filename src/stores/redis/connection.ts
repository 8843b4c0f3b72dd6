// A connection to Redis: standalone, behind Sentinel, or a Cluster. While it is down, commands fail
// immediately. With files of credentials, failed commands are retried for a short time.
import { createStartPeriod, isUnreachable } from '../../resilience/start-period.ts'
import type { RedisConnectionOptions } from './connection-options.ts'
import { createClient } from './create-client.ts'
import { maskError } from './mask-error.ts'
import { type OnReload, SecretReloads } from './reload-secrets.ts'
import { type CommandRetries, retryCommands, type RetryOptions } from './retry-commands.ts'

/** The observer of a connection. */
export interface RedisWatch {
  /**
   * Called when the connection fails or is lost. While Redis may still be starting, the level is
   * `info`; if the failure lasts longer, it is called a second time, with `warn`. With Sentinel or
   * Cluster, the level is `warn` immediately: the driver's error does not contain the cause.
   */
  readonly onDown: (error: Error, level: 'info' | 'warn') => void
  /** Called each time that the connection is established, including the first. */
  readonly onUp: () => void
  /** Called for changed files with secrets. */
  readonly onReload?: OnReload
}

/** An open connection. */
export interface RedisConnection {
  readonly isCluster: boolean
  readonly timeoutMs: number
  /** Whether it is ready, or was lost so recently that commands wait for the next one. */
  isUp(): boolean
  /** `args`: number of keys, keys, other arguments. Rejects with the driver's error. */
  evalsha(sha: string, args: readonly (string | Buffer)[], retry?: RetryOptions): Promise<unknown>
  eval(script: string, args: readonly (string | Buffer)[], retry?: RetryOptions): Promise<unknown>
  ping(): Promise<unknown>
  /** The value as a string with one character per byte. */
  get(key: string): Promise<string | null>
  /** Like `get`, for several keys; on a Cluster all must be of one slot. */
  mget(keys: readonly string[]): Promise<readonly (string | null)[]>
  /** Sets a value for `ms` unless the key exists; resolves to whether it was set. */
  putIfAbsent(entry: { key: string; value: string; ms: number }): Promise<boolean>
  /** On a Cluster all keys must be of one slot. */
  del(keys: readonly string[]): Promise<unknown>
  /** Closes immediately. */
  close(): void
}

/** Delay before a reconnect if the driver has stopped reconnecting. */
const RESTART_MS = 20

/** Without files of credentials, commands are not retried. */
const noRetries: CommandRetries = {
  run: (send) => send(),
  isReconnecting: () => false,
  stop: () => undefined,
}

/** Starts to connect; does not wait, and does not throw if Redis is unreachable. */
export function connectRedis(options: RedisConnectionOptions, watch: RedisWatch): RedisConnection {
  const client = createClient(options)
  const start = createStartPeriod()
  let isClosed = false
  /** The reported level while the connection is down. */
  let reported: 'info' | 'warn' | undefined
  const reportDown = (error: Error) => {
    const level = start.levelOf(isUnreachable(error))
    if (isClosed || level === reported) return
    reported = level
    watch.onDown(error, level)
  }
  client.on('error', (error: Error) => {
    maskError(error) // changes the error in place: commands are rejected with the same object
    reportDown(error)
  })
  client.on('close', () => {
    if (reported === undefined) reportDown(new Error('the connection was closed'))
  })
  client.on('ready', () => {
    reported = undefined
    start.end()
    watch.onUp()
  })
  // Behind Sentinel the driver stops reconnecting if a failover occurs during the master lookup.
  let reconnectTimer: NodeJS.Timeout | undefined
  client.on('end', () => {
    if (isClosed) return
    reconnectTimer = setTimeout(() => {
      client.connect().catch(() => undefined) // reported by the event
    }, RESTART_MS)
  })
  const { secretFiles: files } = options
  const { onReload = () => undefined } = watch
  const reloads = files && new SecretReloads({ client, options, files, onReload })
  const { run, isReconnecting, stop } =
    reloads !== undefined && files?.hasCredentials === true
      ? retryCommands({ client, reloads, options })
      : noRetries
  return {
    isCluster: options.target.kind === 'cluster',
    timeoutMs: options.timeoutMs,
    isUp: () => (client.status === 'ready' || isReconnecting()) && !isClosed,
    evalsha: (sha, [keys = '0', ...rest], retry) =>
      run(() => client.evalsha(sha, String(keys), ...rest), retry),
    eval: (script, [keys = '0', ...rest], retry) =>
      run(() => client.eval(script, String(keys), ...rest), retry),
    ping: () => run(() => client.ping()),
    get: (key) => run(() => client.getBuffer(key)).then(bytesOf),
    mget: async (keys) => (await run(() => client.mgetBuffer([...keys]))).map(bytesOf),
    async putIfAbsent({ key, value, ms }) {
      return (await run(() => client.set(key, value, 'PX', ms, 'NX'))) === 'OK'
    },
    del: (keys) => run(() => client.del([...keys])),
    close() {
      isClosed = true
      clearTimeout(reconnectTimer)
      reloads?.stop()
      stop()
      client.disconnect()
    },
  }
}

/** One character per byte, so that invalid UTF-8 can be compared too. */
function bytesOf(value: Buffer | null): string | null {
  return value === null ? null : value.toString('latin1')
}
