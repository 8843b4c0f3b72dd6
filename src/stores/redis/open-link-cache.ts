// Opens the shared link cache on its own Redis connection. Never waits for Redis: while Redis is
// unavailable, every call fails immediately with StoreError.
import type { LinkCache } from '../../links/link-cache.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { RedisConnectionOptions } from './connection-options.ts'
import { connectRedis } from './connection.ts'
import { createLinkCacheCommands } from './link-cache-commands.ts'
import type { InvalidReason } from './link-cache-entry.ts'
import { createRedisLinkCache } from './link-cache.ts'
import { logReloads } from './reload-secrets.ts'
import { traceCommands } from './trace-commands.ts'

/** An open cache. */
export interface OpenLinkCache extends LinkCache {
  /** Resolves if Redis responds and accepts writes. Rejects with StoreError. */
  probe(): Promise<void>
  /** Stops the probes and closes the connection; calls in flight fail with StoreError. */
  close(): Promise<void>
}

/** Options of the cache. */
export interface OpenLinkCacheOptions {
  readonly redis: RedisConnectionOptions
  readonly metrics: Pick<
    Metrics,
    'linkCacheFailures' | 'linkCacheUnavailable' | 'linkCacheInvalidEntries'
  >
  readonly log: Log
  /** Called with Redis's state for `/readyz`. */
  readonly onState: (state: 'up' | 'down') => void
  /** The deadline of a command. @default COMMAND_MS_MAX */
  readonly commandMsMax?: number | undefined
}

/** Invalid entries are logged at most this often: a Redis full of them would flood the log. */
const LOG_EVERY_MS = 60_000

/** Opens the cache and starts to connect. */
export function openLinkCache(options: OpenLinkCacheOptions): OpenLinkCache {
  const { metrics, log, onState, commandMsMax } = options
  const connection = connectRedis(options.redis, {
    onDown(err, level) {
      onState('down')
      log[level]({ err }, 'link cache unavailable: reading links from the store')
    },
    onUp() {
      onState('up')
      log.info('link cache available')
    },
    onReload: logReloads(log, 'cache'),
  })
  const commands = traceCommands(createLinkCacheCommands({ connection, metrics, commandMsMax }))
  const cache = createRedisLinkCache({ commands, onInvalid: createInvalidReport(metrics, log) })
  return {
    ...cache,
    probe: () => cache.invalidate(''), // a write, for a code that does not exist
    async close() {
      await commands.stop()
      connection.close()
    },
  }
}

/** Counts invalid entries and logs, rate-limited, those not written by an older release. */
function createInvalidReport(
  { linkCacheInvalidEntries }: OpenLinkCacheOptions['metrics'],
  log: Log,
) {
  let loggedMs = -Infinity
  let unlogged = 0
  return (reason: InvalidReason) => {
    linkCacheInvalidEntries.inc({ reason })
    if (reason === 'version') return // expected during a rolling upgrade
    unlogged++
    const nowMs = performance.now()
    if (nowMs - loggedMs < LOG_EVERY_MS) return
    log.warn({ reason, entries: unlogged }, 'link cache entry invalid: dropped, reading the store')
    loggedMs = nowMs
    unlogged = 0
  }
}
