// Shared by the processes of the cache model: the real cache protocol over the model's Redis, the
// store as readers see it, and the mutations of the real code's dependencies.
import type { FindDeps, LinkFinder } from '../../src/resolve/find-link.ts'
import type { Link } from '../../src/links/link.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import type { InvalidateDeps, CacheInvalidator } from '../../src/admin/invalidate-link.ts'
import { encodeEntry } from '../../src/stores/redis/link-cache-entry.ts'
import { createRedisLinkCache, type LinkCacheCommands } from '../../src/stores/redis/link-cache.ts'
import type { Row } from './cache-state.ts'
import type { Perform } from './replay.ts'

/** A mutant: the dependencies that replace those of the real code. */
export interface CacheMutation {
  readonly commands?: (commands: LinkCacheCommands, perform: Perform) => LinkCacheCommands
  readonly find?: (deps: FindDeps) => FindDeps
  readonly finder?: (finder: LinkFinder, nowMs: () => number) => LinkFinder
  readonly creation?: (
    invalidator: CacheInvalidator,
    cache: InvalidateDeps['cache'],
  ) => CacheInvalidator
  readonly operator?: (
    invalidator: CacheInvalidator,
    own: { cache: InvalidateDeps['cache']; to: 'on' | 'off' },
  ) => CacheInvalidator
  /** A create process invalidates the cache before it stores the link. */
  readonly invalidatesFirst?: boolean
}

/** The code that all processes look up, create and change. */
export const CODE = 'code'

/** The cache entry of the link before any change. */
export const HIT = encodeEntry(CODE, { longUrl: 'https://x.example/', expiresAtMs: null })

/** Required by the real code; no test reads them. */
export const metrics = createMetrics()

/** The shared cache. */
export function cacheOf(
  perform: Perform,
  given: {
    mutation: CacheMutation
    clock: { nowMs: number }
    newLease: () => string
    receipt: 'now' | 'local'
  },
) {
  const commands: LinkCacheCommands = {
    async get() {
      const value = await perform('read', ['get'])
      // A miss or a lease leads directly to the next call; a hit may be delayed.
      const isHit = value !== null && !/^.P/.test(value as string)
      if (isHit) given.clock.nowMs = (await perform(given.receipt, ['received'])) as number
      return value as string | null
    },
    putIfAbsent: async ({ value, ms }) =>
      (await perform('write', ['fill lease', value, ms])) as boolean,
    replace: async ({ from, value, ms }) =>
      (await perform('write', ['fill', from, value, ms])) as boolean,
    del: () => perform('write', ['invalidate']),
  }
  const options = { onInvalid: () => undefined, newLease: given.newLease, random: () => 1 }
  return createRedisLinkCache({
    ...options,
    commands: given.mutation.commands?.(commands, perform) ?? commands,
  })
}

/** The store as readers see it; its responses may be delayed. */
export function linksOf(perform: Perform, clock: { nowMs: number }): FindDeps['links'] {
  const read = async (op: 'find' | 'replica') => {
    const row = (await perform('local', [op])) as Row | 'unavailable'
    clock.nowMs = (await perform('local', ['received'])) as number
    if (row === 'unavailable') throw new StoreError('unavailable', { outcome: 'not-done' })
    return linkOf(row)
  }
  return { find: () => read('find'), findOnReplica: () => read('replica') }
}

/** The link of a row. */
export function linkOf(row: Row): Link | undefined {
  if (row === 'none') return undefined
  return {
    code: CODE,
    longUrl: 'https://x.example/',
    createdAtMs: 0,
    expiresAtMs: null,
    creatorId: null,
    writerId: 'w',
    disabledAtMs: row === 'off' ? 1 : null,
    deletedAtMs: null,
  }
}
