// A shared cache of links in memory: for tests, and as the plainest statement of what one does.
import type { Target } from '../../links/decide-redirect.ts'
import { type LinkCache, lifeMsOf, PERMIT_MS } from '../../links/link-cache.ts'
import type { Clock } from '../../resilience/deadline.ts'

type Kept = { readonly untilMs: number } & (
  { readonly permit: string } | { readonly target: Target | undefined }
)

/** Makes an empty cache, not bounded. Every call settles in the next microtask. */
export function createMemoryLinkCache(given: {
  readonly nowMs: Clock
  readonly random?: () => number
}): LinkCache {
  const { nowMs, random = Math.random } = given
  const kept = new Map<string, Kept>()
  let permits = 0
  const standing = (code: string) => {
    const found = kept.get(code)
    return found !== undefined && found.untilMs > nowMs() ? found : undefined
  }
  return {
    look(code) {
      const found = standing(code)
      if (found === undefined) {
        const permit = String(permits++)
        kept.set(code, { permit, untilMs: nowMs() + PERMIT_MS })
        return Promise.resolve({ kind: 'unknown', permit })
      }
      if ('permit' in found) return Promise.resolve({ kind: 'unknown', permit: undefined })
      const { target } = found
      return Promise.resolve(target === undefined ? { kind: 'negative' } : { kind: 'hit', target })
    },
    fill(entry) {
      const found = standing(entry.code)
      const isAllowed = found !== undefined && 'permit' in found && found.permit === entry.permit
      if (isAllowed) {
        const { code, target } = entry
        kept.set(code, { target, untilMs: nowMs() + lifeMsOf(entry, random) })
      }
      return Promise.resolve(isAllowed)
    },
    forget(code) {
      kept.delete(code)
      return Promise.resolve()
    },
  }
}
