// How a mutant of the caching of links bends what the real code is given: one rule of the protocol
// taken away by each.
import { HIT_MS_MAX } from '../../src/resolve/link-memory.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { type BentCache, HIT } from './cache-processes.ts'

/** A pod that remembers misses. */
export const rememberMisses: BentCache = { find: (deps) => ({ ...deps, missMs: HIT_MS_MAX }) }

/** Who comes while a look-up is under way takes whatever it finds. */
export const believeJoined: BentCache = {
  finder(finder) {
    let underWay: ReturnType<typeof finder.find>
    return {
      ...finder,
      find(code, nowMs) {
        if (underWay instanceof Promise) return underWay
        underWay = finder.find(code, nowMs)
        if (underWay instanceof Promise) void underWay.finally(() => (underWay = undefined))
        return underWay
      },
    }
  },
}

/** Who comes while a look-up is under way takes its hit, however long ago it began. */
export const joinOld: BentCache = {
  finder(finder, nowMs) {
    let underWay: ReturnType<typeof finder.find>
    return {
      ...finder,
      async find(code, atMs) {
        const joined = underWay instanceof Promise ? await underWay : undefined
        if (joined !== undefined) return joined
        const found = finder.find(code, Math.max(atMs, nowMs()))
        underWay = found
        return found
      },
    }
  },
}

/** A hit is remembered from its answer on. */
export const countFromAnswer: BentCache = {
  finder(finder, nowMs) {
    let kept:
      { readonly target: { longUrl: string; expiresAtMs: null }; untilMs: number } | undefined
    return {
      ...finder,
      async find(code, atMs) {
        if (kept !== undefined && kept.untilMs > atMs) return kept.target
        const target = await finder.find(code, atMs)
        if (target !== undefined) {
          kept = {
            target: { longUrl: target.longUrl, expiresAtMs: null },
            untilMs: nowMs() + HIT_MS_MAX,
          }
        }
        return target
      },
    }
  },
}

/** What one replica says counts as what a majority says. */
export const believeReplica: BentCache = {
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

/** Whoever finds nothing may fill the cache, if there is nothing yet when they come to it. */
export const fillWithoutPermit: BentCache = {
  commands: (commands) => ({
    ...commands,
    putIfAbsent: () => Promise.resolve(true),
    replace: ({ key, value, ms }) => commands.putIfAbsent({ key, value, ms }),
  }),
}

/** The lease is not asked for when the entry comes. */
export const fillAnyway: BentCache = {
  commands: (commands, ask) => ({
    ...commands,
    async replace({ value, ms }) {
      await ask('write', ['set', value, ms])
      return true
    },
  }),
}

/** Writers put what they know into the cache. */
export const writersSet: BentCache = {
  commands: (commands, ask) => ({
    ...commands,
    del: () => ask('write', ['set', HIT, 3_600_000]),
  }),
}

const confirmedBy = (
  confirm: (
    forget: () => Promise<boolean>,
    own: { to: 'on' | 'off'; confirm: () => Promise<boolean> },
  ) => Promise<boolean>,
): BentCache => ({
  operator: (forgetter, { cache, to }) => ({
    ...forgetter,
    confirm: (code) =>
      confirm(
        () =>
          cache.invalidate(code).then(
            () => true,
            (error: unknown) => !(error instanceof StoreError),
          ),
        { to, confirm: () => forgetter.confirm(code) },
      ),
  }),
})

/** An operator is told that it is done, whatever the cache said. */
export const acknowledgeAnyway: BentCache = confirmedBy(async (forget) => {
  await forget()
  return true
})
/** An operator's change is told once. */
export const sayOnce: BentCache = confirmedBy((forget) => forget())
/** Enabling a link is told to nobody. */
export const enableSilently: BentCache = confirmedBy((_, { to, confirm }) =>
  to === 'on' ? Promise.resolve(true) : confirm(),
)

/** A 201 does not wait for the cache. */
export const answerAtOnce: BentCache = {
  creator: (forgetter) => ({
    ...forgetter,
    invalidate(code) {
      void forgetter.invalidate(code)
      return Promise.resolve()
    },
  }),
}

/** What the cache did not answer is let be. */
export const repeatNothing: BentCache = {
  creator: (forgetter, cache) => ({
    ...forgetter,
    invalidate: (code) => cache.invalidate(code).catch(() => undefined),
  }),
}

/** The process that changes the record forgets nothing of it. */
export const forgetNothing: BentCache = {
  finder: (finder) => ({ ...finder, invalidate: () => undefined }),
}

/** What is remembered goes, but a look-up under way is joined, and what it finds is kept. */
export const forgetMemoryOnly: BentCache = {
  finder(finder, nowMs) {
    const kept = new Map<string, { found: unknown; untilMs: number }>()
    return {
      invalidate: (code) => kept.delete(code),
      async find(code, atMs) {
        const seen = kept.get(code)
        if (seen !== undefined && seen.untilMs > nowMs()) return seen.found as undefined
        const found = await finder.find(code, atMs)
        kept.set(code, { found, untilMs: atMs + 60_000 })
        return found
      },
    }
  },
}
