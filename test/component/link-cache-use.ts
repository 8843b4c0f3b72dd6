// Caches of links on the tests' own servers, opened as a role opens them.
import type { Target } from '../../src/links/decide-redirect.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { cacheSettings, planLinkCache } from '../../src/stores/redis/cache-settings.ts'
import { type OpenLinkCache, openLinkCache } from '../../src/stores/redis/open-link-cache.ts'
import { waitFor } from './wait-for.ts'

const silent = () => undefined

/** An open cache, and what it told of itself. */
export interface UsedCache {
  readonly cache: OpenLinkCache
  readonly told: string[]
  readonly metrics: Metrics
  /** The fields of each warning about entries. */
  readonly warned: unknown[]
}

/** How long a command may take where its deadline is not what is tested: machines pause. */
export const PATIENT_MS_MAX = 5000

/** How a cache is opened. */
export interface UsedCacheOptions {
  /** How long a command may take; unless told, as in production. */
  readonly commandMsMax?: number
}

/** Opens a cache by its URL, or by settings of the environment; does not wait for it. */
export function openCache(
  where: string | Record<string, string>,
  { commandMsMax }: UsedCacheOptions = {},
): UsedCache {
  const env = typeof where === 'string' ? { REDIS_URL: where } : where
  const metrics = createMetrics()
  const told: string[] = []
  const warned: unknown[] = []
  const warn = (fields: unknown) => {
    if (typeof fields === 'object' && fields !== null && 'reason' in fields) warned.push(fields)
  }
  const cache = openLinkCache({
    redis: planLinkCache(parseConfig(cacheSettings, env)),
    metrics,
    log: { debug: silent, info: silent, warn, error: silent },
    onState: (state) => told.push(state),
    commandMsMax,
  })
  return { cache, told, metrics, warned }
}

/** The same, once it answers. */
export async function openReadyCache(
  where: string | Record<string, string>,
  options?: UsedCacheOptions,
): Promise<UsedCache> {
  const used = openCache(where, options)
  await waitFor('the cache', () => answers(used.cache))
  return used
}

/** Whether a cache answers and takes writes now. */
export function answers(cache: OpenLinkCache): Promise<boolean> {
  return cache.probe().then(
    () => true,
    (error: unknown) => {
      if (error instanceof StoreError) return false
      throw error
    },
  )
}

/** What `store` puts into the cache. */
export const target: Target = { longUrl: 'https://example.com/', expiresAtMs: null }

let codesCreated = 0
/** A code that no other test uses. */
export const newCode = () => `code${String(codesCreated++)}`

/** The lease that the first reader of a missing entry gets. */
export async function leaseFor({ cache }: UsedCache, code: string): Promise<string> {
  const seen = await cache.look(code)
  if (seen.kind !== 'unknown' || seen.lease === undefined) throw new Error('there is no lease')
  return seen.lease
}

/** Fills the cache as a reader does; whether the entry was stored. */
export async function store(used: UsedCache, code: string): Promise<boolean> {
  const lease = await leaseFor(used, code)
  return used.cache.fill({ code, lease, target, nowMs: Date.now() })
}
