// Link caches on the Redis servers of the tests, opened in the same way as a role opens them.
import type { Target } from '../../../src/links/decide-redirect.ts'
import { StoreError } from '../../../src/resilience/store-error.ts'
import { parseConfig } from '../../../src/config/config.ts'
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts'
import { cacheSettings, planLinkCache } from '../../../src/stores/redis/cache-settings.ts'
import { type OpenLinkCache, openLinkCache } from '../../../src/stores/redis/open-link-cache.ts'
import { waitFor } from '../wait-for.ts'

const silent = () => undefined

/** An open cache, and the states and warnings that it reported. */
export interface OpenedCache {
  readonly cache: OpenLinkCache
  readonly states: string[]
  readonly metrics: Metrics
  /** The fields of each logged warning about cache entries. */
  readonly warnings: unknown[]
}

/** A deadline that tolerates a pause of the machine, for tests of anything but the deadline. */
export const TOLERANT_MS_MAX = 5000

/** How to open a cache. */
export interface OpenCacheOptions {
  /** The deadline of a command; by default that of production. */
  readonly commandMsMax?: number
}

/** Opens a cache by its URL, or by environment variables; does not wait until it is available. */
export function openCache(
  address: string | Record<string, string>,
  { commandMsMax }: OpenCacheOptions = {},
): OpenedCache {
  const env = typeof address === 'string' ? { REDIS_URL: address } : address
  const metrics = createMetrics()
  const states: string[] = []
  const warnings: unknown[] = []
  const warn = (fields: unknown) => {
    if (typeof fields === 'object' && fields !== null && 'reason' in fields) warnings.push(fields)
  }
  const cache = openLinkCache({
    redis: planLinkCache(parseConfig(cacheSettings, env)),
    metrics,
    log: { debug: silent, info: silent, warn, error: silent },
    onState: (state) => states.push(state),
    commandMsMax,
  })
  return { cache, states, metrics, warnings }
}

/** Opens a cache and waits until it is available. */
export async function openReadyCache(
  address: string | Record<string, string>,
  options?: OpenCacheOptions,
): Promise<OpenedCache> {
  const opened = openCache(address, options)
  await waitFor('the cache to be available', () => isAvailable(opened.cache))
  return opened
}

/** Whether a cache responds and accepts writes. */
export function isAvailable(cache: OpenLinkCache): Promise<boolean> {
  return cache.probe().then(
    () => true,
    (error: unknown) => {
      if (error instanceof StoreError) return false
      throw error
    },
  )
}

/** The target that `store` writes to the cache. */
export const target: Target = { longUrl: 'https://example.com/', expiresAtMs: null }

let codesCreated = 0
/** A code that no other test uses. */
export const newCode = () => `code${String(codesCreated++)}`

/** The lease that the cache returns to the first reader of a missing entry. */
export async function leaseFor({ cache }: OpenedCache, code: string): Promise<string> {
  const entry = await cache.lookUp(code)
  if (entry.kind !== 'unknown' || entry.lease === undefined) throw new Error('no lease returned')
  return entry.lease
}

/** Fills the cache as a reader does; returns whether the entry was stored. */
export async function store(opened: OpenedCache, code: string): Promise<boolean> {
  const lease = await leaseFor(opened, code)
  return opened.cache.fill({ code, lease, target, nowMs: Date.now() })
}
