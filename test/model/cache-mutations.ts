// The mutations of the link cache protocol: each one removes one rule from the dependencies of the
// real code.
import { UNCERTAIN_HIT_MS } from '../../src/resolve/link-memory.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { type CacheMutation, HIT } from './cache-processes.ts'

/** A pod caches misses in memory. */
export const cacheMisses: CacheMutation = { find: (deps) => ({ ...deps, isOnlyWriter: true }) }

/** A request joins a lookup in flight and returns its result, also a miss. */
export const returnJoinedMiss: CacheMutation = {
  finder(finder) {
    let inFlight: ReturnType<typeof finder.find>
    return {
      ...finder,
      find(code, nowMs) {
        if (inFlight instanceof Promise) return inFlight
        inFlight = finder.find(code, nowMs)
        if (inFlight instanceof Promise) void inFlight.finally(() => (inFlight = undefined))
        return inFlight
      },
    }
  },
}

/** A request joins a lookup in flight and returns its hit, regardless of its start time. */
export const returnOldHit: CacheMutation = {
  finder(finder, nowMs) {
    let inFlight: ReturnType<typeof finder.find>
    return {
      ...finder,
      async find(code, atMs) {
        const joined = inFlight instanceof Promise ? await inFlight : undefined
        if (joined !== undefined) return joined
        const found = finder.find(code, Math.max(atMs, nowMs()))
        inFlight = found
        return found
      },
    }
  },
}

/** The lifetime of a hit in memory starts at the response. */
export const countFromResponse: CacheMutation = {
  finder(finder, nowMs) {
    let cached:
      { readonly target: { longUrl: string; expiresAtMs: null }; untilMs: number } | undefined
    return {
      ...finder,
      async find(code, atMs) {
        if (cached !== undefined && cached.untilMs > atMs) return cached.target
        const target = await finder.find(code, atMs)
        if (target !== undefined) {
          cached = {
            target: { longUrl: target.longUrl, expiresAtMs: null },
            untilMs: nowMs() + UNCERTAIN_HIT_MS,
          }
        }
        return target
      },
    }
  },
}

/** The result of one replica counts as a majority read. */
export const trustReplica: CacheMutation = {
  find: (deps) => ({
    ...deps,
    links: {
      find: (code) =>
        deps.links.find(code).catch(async (error: unknown) => {
          if (deps.links.findOnReplica === undefined) throw error
          return deps.links.findOnReplica(code)
        }),
    },
  }),
}

/** A process that reads a miss fills the cache without a lease, if the cache has no entry. */
export const fillWithoutLease: CacheMutation = {
  commands: (commands) => ({
    ...commands,
    putIfAbsent: () => Promise.resolve(true),
    replace: ({ key, value, ms }) => commands.putIfAbsent({ key, value, ms }),
  }),
}

/** A fill does not compare the lease. */
export const fillWithoutComparing: CacheMutation = {
  commands: (commands, perform) => ({
    ...commands,
    async replace({ value, ms }) {
      await perform('write', ['set', value, ms])
      return true
    },
  }),
}

/** Writers fill the cache instead of invalidating it. */
export const writersFill: CacheMutation = {
  commands: (commands, perform) => ({
    ...commands,
    del: () => perform('write', ['set', HIT, 3_600_000]),
  }),
}

const confirmedBy = (
  confirm: (
    invalidate: () => Promise<boolean>,
    own: { to: 'on' | 'off'; confirm: () => Promise<boolean> },
  ) => Promise<boolean>,
): CacheMutation => ({
  operator: (invalidator, { cache, to }) => ({
    ...invalidator,
    confirm: (code) =>
      confirm(
        () =>
          cache.invalidate(code).then(
            () => true,
            (error: unknown) => !(error instanceof StoreError),
          ),
        { to, confirm: () => invalidator.confirm(code) },
      ),
  }),
})

/** A change is confirmed to the operator regardless of the result of the cache. */
export const confirmAnyway: CacheMutation = confirmedBy(async (invalidate) => {
  await invalidate()
  return true
})
/** A change invalidates the cache once. */
export const invalidateOnce: CacheMutation = confirmedBy((invalidate) => invalidate())
/** Enabling a link does not invalidate the cache. */
export const enableWithoutInvalidation: CacheMutation = confirmedBy((_, { to, confirm }) =>
  to === 'on' ? Promise.resolve(true) : confirm(),
)

/** A 201 does not wait for the cache. */
export const respondWithoutInvalidation: CacheMutation = {
  creation: (invalidator) => ({
    ...invalidator,
    invalidate(code) {
      void invalidator.invalidate(code)
      return Promise.resolve()
    },
  }),
}

/** A failed invalidation is not retried. */
export const retryNothing: CacheMutation = {
  creation: (invalidator, cache) => ({
    ...invalidator,
    invalidate: (code) => cache.invalidate(code).catch(() => undefined),
  }),
}

/** The process that changes the link does not invalidate its memory. */
export const invalidateNothing: CacheMutation = {
  finder: (finder) => ({ ...finder, invalidate: () => undefined }),
}

/** An invalidation clears the memory, but the result of a lookup in flight is cached. */
export const invalidateMemoryOnly: CacheMutation = {
  finder(finder, nowMs) {
    const entries = new Map<string, { found: unknown; untilMs: number }>()
    return {
      invalidate: (code) => entries.delete(code),
      async find(code, atMs) {
        const cached = entries.get(code)
        if (cached !== undefined && cached.untilMs > nowMs()) return cached.found as undefined
        const found = await finder.find(code, atMs)
        entries.set(code, { found, untilMs: atMs + 60_000 })
        return found
      },
    }
  },
}
