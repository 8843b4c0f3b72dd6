// What the processes of the cache's model share: the real protocol of the cache over the model's
// Redis, the store as readers see it, and how a mutant bends what the real code is given.
import type { FindDeps, LinkFinder } from '../../src/resolve/find-link.ts'
import type { Link } from '../../src/links/link.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import type { InvalidateDeps, CacheInvalidator } from '../../src/admin/invalidate-link.ts'
import { encodeEntry } from '../../src/stores/redis/link-cache-entry.ts'
import { createRedisLinkCache, type LinkCacheCommands } from '../../src/stores/redis/link-cache.ts'
import type { Row } from './cache-state.ts'
import type { Ask } from './replay.ts'

/** Mutants: what the real code is given instead. */
export interface BentCache {
  readonly commands?: (commands: LinkCacheCommands, ask: Ask) => LinkCacheCommands
  readonly find?: (deps: FindDeps) => FindDeps
  readonly finder?: (finder: LinkFinder, nowMs: () => number) => LinkFinder
  readonly creator?: (
    forgetter: CacheInvalidator,
    cache: InvalidateDeps['cache'],
  ) => CacheInvalidator
  readonly operator?: (
    forgetter: CacheInvalidator,
    own: { cache: InvalidateDeps['cache']; to: 'on' | 'off' },
  ) => CacheInvalidator
  /** The creator tells the cache before it has stored the link. */
  readonly tellsFirst?: boolean
}

/** The code that all of them look up, create and change. */
export const CODE = 'code'

/** The value of the cache for the link as it is before any change. */
export const HIT = encodeEntry(CODE, { longUrl: 'https://x.example/', expiresAtMs: null })

/** Counts that nobody reads. */
export const metrics = createMetrics()

/** The shared cache. */
export function cacheOf(
  ask: Ask,
  given: {
    bent: BentCache
    clock: { nowMs: number }
    newLease: () => string
    landing: 'now' | 'local'
  },
) {
  const commands: LinkCacheCommands = {
    async get() {
      const value = await ask('read', ['get'])
      // Who finds nothing, or a lease, goes on to ask; else the answer may be long on its way.
      const isLast = value !== null && !/^.P/.test(value as string)
      if (isLast) given.clock.nowMs = (await ask(given.landing, ['landed'])) as number
      return value as string | null
    },
    putIfAbsent: async ({ value, ms }) => (await ask('write', ['put', value, ms])) as boolean,
    replace: async ({ from, value, ms }) =>
      (await ask('write', ['replace', from, value, ms])) as boolean,
    del: () => ask('write', ['del']),
  }
  const options = { onInvalid: () => undefined, newLease: given.newLease, random: () => 1 }
  return createRedisLinkCache({
    ...options,
    commands: given.bent.commands?.(commands, ask) ?? commands,
  })
}

/** The store as readers see it; its answers may be long on their way. */
export function linksOf(ask: Ask, clock: { nowMs: number }): FindDeps['links'] {
  const answerTo = async (op: 'find' | 'replica') => {
    const row = (await ask('local', [op])) as Row | 'away'
    clock.nowMs = (await ask('local', ['landed'])) as number
    if (row === 'away') throw new StoreError('away', { outcome: 'not-done' })
    return linkOf(row)
  }
  return { find: () => answerTo('find'), findOnReplica: () => answerTo('replica') }
}

/** The record that a row stands for. */
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
