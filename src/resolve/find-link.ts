// Looks up the target of a redirect: in memory, then in the tiers behind it. Concurrent calls for a
// code share one lookup if its result is valid for them. Results may have expired: the caller
// checks `expiresAtMs`.
import type { Target } from '../links/decide-redirect.ts'
import { createReadTiers, AllTiersUnavailable, type TierDeps } from './read-tiers.ts'
import { createLinkMemory, UNCERTAIN_HIT_MS } from './link-memory.ts'

/** Resolves a code to its target, or to `undefined` if the code has no link that redirects. */
export interface LinkFinder {
  /** Returns the target from memory, or a promise, which may reject with StoreError. */
  find(code: string, nowMs: number): Target | undefined | Promise<Target | undefined>
  /** Removes a code from memory, after this process has changed its record. */
  invalidate(code: string): void
}

/** Dependencies of a finder. */
export interface FindDeps extends TierDeps {
  /** Whether no other process writes links: memory then keeps them for longer. */
  readonly isOnlyWriter: boolean
  /** Whether a write of unknown outcome may still take effect. @default () => false */
  readonly hasUnknownWrites?: () => boolean
  /**
   * Maximum age in milliseconds of a stale target that is served while cache and store are both
   * unavailable. @default 0: none is served
   */
  readonly staleMs?: number
  /** From 0 to 1. @default Math.random */
  readonly random?: () => number
}

interface Lookup {
  readonly startedMs: number
  /** Removed at the end: a former table of the Map may keep the lookup alive. */
  target: Promise<Target | undefined> | undefined
}

/** Creates a finder with an empty memory. */
export function createLinkFinder(deps: FindDeps): LinkFinder {
  const { metrics, nowMs, isOnlyWriter, hasUnknownWrites, staleMs = 0, random = Math.random } = deps
  const memory = createLinkMemory({ isOnlyWriter, hasUnknownWrites, staleMs, random })
  const readTiers = createReadTiers(deps)
  const inFlight = new Map<string, Lookup>()
  const memoryHits = metrics.lookups.labels('memory', 'hit')
  const negativeHits = metrics.lookups.labels('memory', 'miss') // it counts as a miss
  const staleHits = metrics.lookups.labels('stale', 'hit')

  /** The stale target, if any: memory then serves it for EXTENSION_MS. Counts the lookup. */
  const serveStale = (code: string, startedMs: number): Target | undefined => {
    const target = memory.staleTarget(code, nowMs())
    if (target === undefined) return undefined
    staleHits.inc()
    memory.extend(code, startedMs)
    return target
  }
  const lookUp = (code: string, startedMs: number): Promise<Target | undefined> => {
    // False once `invalidate` has removed this lookup or a newer one has replaced it: its result
    // may then be outdated.
    const isCurrent = () => inFlight.get(code) === lookup
    const run = async () => {
      try {
        const target = await readTiers(code, isCurrent)
        if (isCurrent()) memory.set(code, target, startedMs)
        return target
      } catch (error) {
        const stale = error instanceof AllTiersUnavailable ? serveStale(code, startedMs) : undefined
        if (stale === undefined) throw error
        return stale
      } finally {
        if (isCurrent()) inFlight.delete(code)
        lookup.target = undefined
      }
    }
    const target = run()
    const lookup: Lookup = { startedMs, target }
    inFlight.set(code, lookup)
    return target
  }
  /** Joins a lookup, but accepts only a hit: a miss may predate a link created before this call. */
  const join = async (lookup: Lookup, code: string): Promise<Target | undefined> => {
    const target = await lookup.target
    if (target !== undefined) return target
    // Any other lookup in flight started after this call, so its miss is valid here.
    return inFlight.get(code)?.target ?? lookUp(code, nowMs())
  }

  return {
    find(code, atMs) {
      const cached = memory.get(code, atMs)
      if (cached === null) {
        negativeHits.inc()
        return undefined
      }
      if (cached !== undefined) {
        memoryHits.inc()
        return cached
      }
      const lookup = inFlight.get(code)
      if (lookup !== undefined && atMs - lookup.startedMs < UNCERTAIN_HIT_MS)
        return join(lookup, code)
      return lookUp(code, atMs)
    },
    invalidate(code) {
      memory.delete(code)
      inFlight.delete(code)
    },
  }
}
