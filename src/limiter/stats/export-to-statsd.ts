// Exports the limiter's statistics to statsd, with the settings of envoyproxy/ratelimit.
import type { Log } from '../../telemetry/log.ts'
import { startStatsd } from '../../telemetry/statsd.ts'
import { readStats } from './render-stats.ts'
import type { RuleStats } from './rule-stats.ts'

/** Dependencies of the export. */
export interface StatsdExportDeps {
  readonly config: {
    readonly STATSD_HOST: string
    readonly STATSD_PORT: number
    /** Milliseconds between exports. */
    readonly STATS_FLUSH_INTERVAL: number
    readonly EXTRA_TAGS: Parameters<typeof startStatsd>[0]['tags']
  }
  readonly stats: RuleStats
  readonly log: Log
}

/** Starts the export; returns a function that stops it. */
export function exportToStatsd({ config, stats, log }: StatsdExportDeps): () => Promise<void> {
  const statsd = startStatsd({
    host: config.STATSD_HOST,
    port: config.STATSD_PORT,
    flushMs: config.STATS_FLUSH_INTERVAL,
    tags: config.EXTRA_TAGS,
    read: () => readStats(stats),
    log,
  })
  return () => statsd.stop()
}
