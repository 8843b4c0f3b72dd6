// Opens the stores of links that create pods and redirect pods share: Cassandra and the link cache.
// Neither has to be available.
import type { ConfigOf } from '../config/config.ts'
import type { Health } from '../process/health.ts'
import type { Stop } from '../process/stop.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { openCassandra } from './cassandra/client.ts'
import { createCassandraLinkStore } from './cassandra/link-store.ts'
import { cassandraDependentSettings, cassandraSettings } from './cassandra/settings.ts'
import { cacheDependentSettings, cacheSettings, planLinkCache } from './redis/cache-settings.ts'
import { openLinkCache } from './redis/open-link-cache.ts'

/** The settings of both. */
export const linkStoreSettings = { ...cassandraSettings, ...cacheSettings } as const

/** The checks of settings that depend on each other. */
export const linkStoreDependentSettings = [...cassandraDependentSettings, ...cacheDependentSettings]

/** Starts to connect; `/readyz` reports the states as `store` and `cache`. Throws ConfigError. */
export function openLinkStores(
  config: ConfigOf<typeof linkStoreSettings>,
  service: {
    readonly log: Log
    readonly metrics: Metrics
    readonly health: Health
    readonly signal: AbortSignal
    onStop(stop: Stop): void
  },
  onStoreUnavailable?: () => void,
) {
  const { log, metrics, health, signal } = service
  const cassandra = openCassandra({
    config,
    metrics,
    log,
    onState: (state) => {
      health.note('store', state)
      if (state !== 'up') onStoreUnavailable?.()
    },
    signal,
  })
  const cache = openLinkCache({
    redis: planLinkCache(config),
    metrics,
    log,
    onState: (state) => {
      health.note('cache', state)
    },
  })
  service.onStop(() => cassandra.close())
  service.onStop(() => cache.close())
  return { cassandra, cache, links: createCassandraLinkStore(cassandra) }
}
