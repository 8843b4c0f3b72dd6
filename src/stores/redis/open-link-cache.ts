// Opens the shared cache of links on a Redis of its own. Never waits for Redis: while it is not
// there, every call fails at once with StoreError.
import type { LinkCache } from '../../links/link-cache.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { connectRedis, type RedisConnectionOptions } from './connection.ts'
import { createLinkCacheCommands } from './link-cache-commands.ts'
import type { InvalidReason } from './link-cache-entry.ts'
import { createRedisLinkCache } from './link-cache.ts'
import { traceCommands } from './trace-commands.ts'

/** An open cache. */
export interface OpenLinkCache extends LinkCache {
  /** Resolves if Redis answers and takes writes. Rejects with StoreError. */
  probe(): Promise<void>
  /** Ends the probing and closes the connection; what is under way fails with StoreError. */
  close(): Promise<void>
}

/** What opening needs. */
export interface OpenLinkCacheOptions {
  readonly redis: RedisConnectionOptions
  readonly metrics: Pick<Metrics, 'linkCacheFailures' | 'linkCacheAway' | 'linkCacheInvalid'>
  readonly log: Log
  /** Told, in words for `/readyz`, how Redis fares: `up` or `down`. */
  readonly onState: (state: 'up' | 'down') => void
  /** How long a command may take. @default COMMAND_MS_MAX */
  readonly commandMsMax?: number | undefined
}

/** Invalid entries are logged so often at most: a Redis full of them would fill the log. */
const LOG_EVERY_MS = 60_000

/** Begins to connect. */
export function openLinkCache(options: OpenLinkCacheOptions): OpenLinkCache {
  const { metrics, log, onState, commandMsMax } = options
  const connection = connectRedis(options.redis, {
    onDown(err) {
      onState('down')
      log.warn({ err }, 'the link cache is away: links are read from the store')
    },
    onUp() {
      onState('up')
      log.info('the link cache is there')
    },
  })
  const commands = traceCommands(createLinkCacheCommands({ connection, metrics, commandMsMax }))
  const cache = createRedisLinkCache({ commands, onInvalid: createInvalidReport(metrics, log) })
  return {
    ...cache,
    probe: () => cache.forget(''),
    async close() {
      await commands.stop()
      connection.close()
    },
  }
}

/** Counts invalid entries, and logs those that no release has written, once in LOG_EVERY_MS. */
function createInvalidReport({ linkCacheInvalid }: OpenLinkCacheOptions['metrics'], log: Log) {
  let loggedMs = -Infinity
  let unlogged = 0
  return (reason: InvalidReason) => {
    linkCacheInvalid.inc({ reason })
    if (reason === 'version') return // as expected during a rolling upgrade
    unlogged++
    const nowMs = performance.now()
    if (nowMs - loggedMs < LOG_EVERY_MS) return
    log.warn({ reason, entries: unlogged }, 'link cache entry invalid: dropped, reading the store')
    loggedMs = nowMs
    unlogged = 0
  }
}
