// The ladder of a redirect: memory, then the store, with one look-up in flight for a code. Every
// tier carries `expiresAtMs`; who reads judges it. Never writes to the store.
import { type Target, targetOf } from '../links/decide-redirect.ts'
import type { LinkStore } from '../links/link-store.ts'
import type { Clock } from '../process/deadline.ts'
import type { Metrics } from '../process/metrics.ts'
import { createLinkMemory, HIT_MS_MAX } from './link-memory.ts'

/** Finds what a code points at; `undefined` = nothing that can be followed. */
export interface LinkFinder {
  /** Answers at once from memory, else by a promise, which may reject with StoreError. */
  find(code: string, nowMs: number): Target | undefined | Promise<Target | undefined>
  /** Forgets what is remembered of a code, because this process has changed its record. */
  forget(code: string): void
}

/** What finding needs. */
export interface FindDeps {
  readonly links: Pick<LinkStore, 'find'>
  readonly nowMs: Clock
  readonly metrics: Pick<Metrics, 'lookups'>
  /** How long "there is no such link" is remembered; 0 where several processes create links. */
  readonly missMs: number
  readonly random?: () => number
}

interface Lookup {
  readonly begunMs: number
  readonly answer: Promise<Target | undefined>
}

/** Makes the ladder with nothing in memory. */
export function createLinkFinder(deps: FindDeps): LinkFinder {
  const memory = createLinkMemory({ missMs: deps.missMs, random: deps.random ?? Math.random })
  const inFlight = new Map<string, Lookup>()
  const memoryHits = deps.metrics.lookups.labels('memory', 'hit')
  const memoryMisses = deps.metrics.lookups.labels('memory', 'miss')

  const ask = async (code: string): Promise<Target | undefined> => {
    try {
      const target = targetOf(await deps.links.find(code))
      deps.metrics.lookups.inc({ tier: 'store', outcome: target === undefined ? 'miss' : 'hit' })
      return target
    } catch (error) {
      deps.metrics.lookups.inc({ tier: 'store', outcome: 'error' })
      throw error
    }
  }
  const lookUp = (code: string, begunMs: number): Promise<Target | undefined> => {
    const lookup: Lookup = {
      begunMs,
      answer: ask(code)
        .then((target) => {
          // `forget` has taken it out: the record has changed since, so this proves nothing.
          if (inFlight.get(code) === lookup) memory.set(code, target, begunMs)
          return target
        })
        .finally(() => {
          if (inFlight.get(code) === lookup) inFlight.delete(code)
        }),
    }
    inFlight.set(code, lookup)
    return lookup.answer
  }
  /** Who joins a look-up takes only a hit from it: a miss begun before they came proves nothing. */
  const join = async (lookup: Lookup, code: string): Promise<Target | undefined> => {
    const target = await lookup.answer
    if (target !== undefined) return target
    // Whatever is in flight now began after we came, so its miss holds for us.
    return inFlight.get(code)?.answer ?? lookUp(code, deps.nowMs())
  }

  return {
    find(code, nowMs) {
      const remembered = memory.get(code, nowMs)
      if (remembered === null) {
        memoryMisses.inc()
        return undefined
      }
      if (remembered !== undefined) {
        memoryHits.inc()
        return remembered
      }
      const lookup = inFlight.get(code)
      if (lookup !== undefined && nowMs - lookup.begunMs < HIT_MS_MAX) return join(lookup, code)
      return lookUp(code, nowMs)
    },
    forget(code) {
      memory.delete(code)
      inFlight.delete(code)
    },
  }
}
