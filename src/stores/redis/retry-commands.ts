// Retries commands that may have failed because credentials rotate: Redis rejects the old ones, or
// closes the connections that use them. A retried command may count hits twice: if Redis closes a
// connection, it is unknown whether Redis has executed the commands in flight.
import { Cluster, type Redis } from 'ioredis'
import { within } from '../../resilience/deadline.ts'
import { RECONNECT_MS_MAX, type RedisConnectionOptions } from './connection-options.ts'
import { isCredentialError, type SecretReloads } from './reload-secrets.ts'

/** How a command is retried. */
export interface RetryOptions {
  /** Whether the command may be sent twice. @default true */
  readonly isRetryable?: boolean
  /** When its call started, in ms of `performance.now()`. @default now */
  readonly startedMs?: number
}

/** Retries of the commands of one client. */
export interface CommandRetries {
  /**
   * Sends a command, and retries it until `reconnectMsMax` or the timeout of commands has elapsed
   * since the start of the call. Rejects with the driver's error.
   */
  readonly run: <T>(send: () => Promise<T>, options?: RetryOptions) => Promise<T>
  /** Whether the connection was lost so recently that commands wait for the next one. */
  readonly isReconnecting: () => boolean
  /** Rejects the commands that wait; later ones are not retried. */
  readonly stop: () => void
}

/** One retry after the connection is lost, and one if the next connection is rejected. */
const ATTEMPTS_MAX = 3

/** Creates the retries. */
export function retryCommands(given: {
  readonly client: Redis | Cluster
  readonly reloads: Pick<SecretReloads, 'renew'>
  readonly options: Pick<RedisConnectionOptions, 'timeoutMs' | 'reconnectMsMax'>
}): CommandRetries {
  const { client, reloads } = given
  const { timeoutMs, reconnectMsMax = RECONNECT_MS_MAX } = given.options
  const retryMsMax = Math.min(reconnectMsMax, timeoutMs)
  const bounds = { retryMsMax, reconnectMsMax }
  const { isReconnecting, untilReady, timeouts, stop } = watchConnection(client, bounds)
  let isStopped = false
  /** Waits until a retry can succeed; returns whether to retry. Rejects with `error` on timeout. */
  const mayRetry = async (error: unknown, leftMs: () => number): Promise<boolean> => {
    if (leftMs() <= 0 || !(isCredentialError(error) || isLoss(error))) return false
    const recovery = isCredentialError(error) ? reloads.renew(error) : untilReady().then(() => true)
    return (await within(leftMs(), recovery, () => error as Error)) && leftMs() > 0
  }
  const sendAndRetry = async <T>(send: () => Promise<T>, leftMs: () => number): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      const timeoutsBefore = timeouts()
      try {
        return await send()
      } catch (error) {
        // Redis executes what a hanging connection has received: a retry would count twice.
        const isFinal = attempt === ATTEMPTS_MAX || timeouts() !== timeoutsBefore
        if (isFinal || !(await mayRetry(error, leftMs))) throw error
      }
    }
  }
  return {
    isReconnecting,
    async run(send, { isRetryable = true, startedMs = performance.now() } = {}) {
      if (!isRetryable) return send()
      const leftMs = () => (isStopped ? 0 : startedMs + retryMsMax - performance.now())
      if (isReconnecting()) {
        await untilReady()
        if (leftMs() <= 0) throw new Error('Redis is not connected')
      }
      return sendAndRetry(send, leftMs)
    },
    stop() {
      isStopped = true
      stop()
    },
  }
}

/** Observes the losses of the connection, and waits for the next one. */
function watchConnection(
  client: Redis | Cluster,
  { retryMsMax, reconnectMsMax }: Readonly<Record<'retryMsMax' | 'reconnectMsMax', number>>,
) {
  let lostAtMs: number | undefined = -Infinity
  let timeouts = 0
  let reconnecting: { readonly ready: Promise<void>; readonly done: () => void } | undefined
  const onError = (error: Error) => {
    if (!error.message.startsWith('Socket timeout')) return
    timeouts++
    lostAtMs = -Infinity // Redis hangs: commands do not wait for it
  }
  if (client instanceof Cluster) client.on('node error', onError)
  else client.on('error', onError)
  client.on('close', () => {
    lostAtMs ??= performance.now()
  })
  client.on('ready', () => {
    lostAtMs = undefined
  })
  const isReconnecting = () =>
    client.status !== 'ready' &&
    lostAtMs !== undefined &&
    performance.now() - lostAtMs < reconnectMsMax
  // A Cluster is ready while any node is; the driver itself delays the commands for the others. A
  // single connection remains `ready` for a moment after Redis has closed it.
  const isReady = () =>
    client.status === 'ready' && (client instanceof Cluster || client.stream.writable)
  const startWait = () => {
    let done = (): void => undefined
    const ready = new Promise<void>((resolve) => {
      done = () => {
        clearTimeout(timer)
        client.off('ready', done)
        client.off('end', done)
        reconnecting = undefined
        resolve()
      }
      const timer = setTimeout(done, retryMsMax)
      client.on('ready', done)
      client.on('end', done)
    })
    return { ready, done }
  }
  const untilReady = (): Promise<void> => {
    if (isReady()) return Promise.resolve()
    reconnecting ??= startWait()
    return reconnecting.ready
  }
  return { isReconnecting, untilReady, timeouts: () => timeouts, stop: () => reconnecting?.done() }
}

const LOSSES = [
  'Reached the max retries',
  'Connection is closed',
  "Stream isn't writeable",
  // The node to which the Cluster redirected was lost. The message ends with the last error, which
  // can be that loss or the redirection.
  'Too many Cluster redirections',
]

/** Whether a command failed because the connection was closed before or after it was sent. */
function isLoss(error: unknown): boolean {
  return error instanceof Error && LOSSES.some((loss) => error.message.startsWith(loss))
}
