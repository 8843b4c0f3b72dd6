// The ladder of a redirect: memory, then the tiers behind it, with one look-up in flight for a
// code. Every tier carries `expiresAtMs`; who reads judges it. Never writes to the store.
import type { Target } from '../links/decide-redirect.ts'
import { createAskTiers, NobodyAnswered, type Tiers } from './read-tiers.ts'
import { createLinkMemory, HIT_MS_MAX } from './link-memory.ts'

/** Finds what a code points at; `undefined` = nothing that can be followed. */
export interface LinkFinder {
  /** Answers at once from memory, else by a promise, which may reject with StoreError. */
  find(code: string, nowMs: number): Target | undefined | Promise<Target | undefined>
  /** Forgets what is remembered of a code, because this process has changed its record. */
  forget(code: string): void
}

/** What finding needs. */
export interface FindDeps extends Tiers {
  /** How long "there is no such link" is remembered; 0 where several processes create links. */
  readonly missMs: number
  /**
   * How long ago a target may have been seen to be followed while neither the cache nor the store
   * answers. @default 0, never
   */
  readonly staleMs?: number
  readonly random?: () => number
}

interface Lookup {
  readonly begunMs: number
  readonly answer: Promise<Target | undefined>
}

/** Makes the ladder with nothing in memory. */
export function createLinkFinder(deps: FindDeps): LinkFinder {
  const { metrics, nowMs, missMs, staleMs = 0, random = Math.random } = deps
  const memory = createLinkMemory({ missMs, staleMs, random })
  const ask = createAskTiers(deps)
  const inFlight = new Map<string, Lookup>()
  const memoryHits = metrics.lookups.labels('memory', 'hit')
  const memoryMisses = metrics.lookups.labels('memory', 'miss')
  const staleHits = metrics.lookups.labels('stale', 'hit')

  /** What was seen lately, where nobody could answer. */
  const lastSeen = (code: string, begunMs: number): Target | undefined => {
    const target = memory.lastSeen(code, nowMs())
    if (target === undefined) return undefined
    staleHits.inc()
    memory.hold(code, begunMs)
    return target
  }
  const lookUp = (code: string, begunMs: number): Promise<Target | undefined> => {
    // `forget` takes it out: the record has changed since, so what it found proves nothing.
    const isCurrent = () => inFlight.get(code) === lookup
    const answered = async () => {
      try {
        const target = await ask(code, isCurrent)
        if (isCurrent()) memory.set(code, target, begunMs)
        return target
      } catch (error) {
        const last = error instanceof NobodyAnswered ? lastSeen(code, begunMs) : undefined
        if (last === undefined) throw error
        return last
      } finally {
        if (isCurrent()) inFlight.delete(code)
      }
    }
    const lookup: Lookup = { begunMs, answer: answered() }
    inFlight.set(code, lookup)
    return lookup.answer
  }
  /** Who joins a look-up takes only a hit from it: a miss begun before they came proves nothing. */
  const join = async (lookup: Lookup, code: string): Promise<Target | undefined> => {
    const target = await lookup.answer
    if (target !== undefined) return target
    // Whatever is in flight now began after we came, so its miss holds for us.
    return inFlight.get(code)?.answer ?? lookUp(code, nowMs())
  }

  return {
    find(code, atMs) {
      const remembered = memory.get(code, atMs)
      if (remembered === null) {
        memoryMisses.inc()
        return undefined
      }
      if (remembered !== undefined) {
        memoryHits.inc()
        return remembered
      }
      const lookup = inFlight.get(code)
      if (lookup !== undefined && atMs - lookup.begunMs < HIT_MS_MAX) return join(lookup, code)
      return lookUp(code, atMs)
    },
    forget(code) {
      memory.delete(code)
      inFlight.delete(code)
    },
  }
}
