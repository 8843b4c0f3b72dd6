// A connection to Redis: standalone, behind Sentinel or Cluster. Until it has reconnected, commands
// fail immediately, except while credentials rotate: then they are retried.
import { createStartPeriod, isUnreachable } from '../../resilience/start-period.ts'
import type { RedisConnectionOptions } from './connection-options.ts'
import { createClient } from './create-client.ts'
import { maskError } from './mask-error.ts'
import { type OnReload, SecretReloads } from './reload-secrets.ts'
import { type CommandRetries, retryCommands, type RetryOptions } from './retry-commands.ts'

/** The observer of a connection. */
export interface RedisWatch {
  /**
   * Called once when the connection fails or is lost; twice if the level to log is `info` at first,
   * because Redis may still be starting. With Sentinel or Cluster it is `warn` immediately: the
   * driver's error does not have the cause.
   */
  readonly onDown: (error: Error, level: 'info' | 'warn') => void
  /** Called when the connection is established, also for the first time. */
  readonly onUp: () => void
  /** Called for changed files with secrets. */
  readonly onReload?: OnReload
}

/** An open connection. */
export interface RedisConnection {
  readonly isCluster: boolean
  readonly timeoutMs: number
  /** Whether a command can be sent now. */
  isUp(): boolean
  /** `args`: number of keys, keys, other arguments. Rejects with the driver's error. */
  evalsha(sha: string, args: readonly (string | Buffer)[], retry?: RetryOptions): Promise<unknown>
  eval(script: string, args: readonly (string | Buffer)[], retry?: RetryOptions): Promise<unknown>
  ping(): Promise<unknown>
  /** The value as a string with one character per byte. */
  get(key: string): Promise<string | null>
  /** As `get`, for several keys; on a Cluster all must be of one slot. */
  mget(keys: readonly string[]): Promise<readonly (string | null)[]>
  /** Sets a value for `ms` unless the key exists; resolves to whether it was set. */
  putIfAbsent(entry: { key: string; value: string; ms: number }): Promise<boolean>
  /** On a Cluster all keys must be of one slot. */
  del(keys: readonly string[]): Promise<unknown>
  /** Closes immediately. */
  close(): void
}

/** Delay of reconnecting if the driver has stopped to reconnect. */
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
    maskError(error) // also for the commands that fail with it
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
  const { secretFiles: files, timeoutMs } = options
  const { onReload = () => undefined } = watch
  const reloads = files && new SecretReloads({ client, options, files, onReload })
  const { run, isReconnecting, stop } =
    reloads !== undefined && files?.hasCredentials === true
      ? retryCommands({ client, reloads, timeoutMs })
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
