// A shared link cache in memory: for tests, and as the simplest reference for one.
import type { Target } from '../../../src/links/decide-redirect.ts'
import { type LinkCache, lifeMsOf, LEASE_MS } from '../../../src/links/link-cache.ts'
import type { Clock } from '../../../src/resilience/deadline.ts'

type Entry = { readonly untilMs: number } & (
  { readonly lease: string } | { readonly target: Target | undefined }
)

/** Creates an empty, unbounded cache. Every call settles in the next microtask. */
export function createMemoryLinkCache(options: {
  readonly nowMs: Clock
  readonly random?: () => number
}): LinkCache {
  const { nowMs, random = Math.random } = options
  const entries = new Map<string, Entry>()
  let leases = 0
  const readLive = (code: string) => {
    const found = entries.get(code)
    return found !== undefined && found.untilMs > nowMs() ? found : undefined
  }
  return {
    lookUp(code) {
      const found = readLive(code)
      if (found === undefined) {
        const lease = String(leases++)
        entries.set(code, { lease, untilMs: nowMs() + LEASE_MS })
        return Promise.resolve({ kind: 'unknown', lease })
      }
      if ('lease' in found) return Promise.resolve({ kind: 'unknown', lease: undefined })
      const { target } = found
      return Promise.resolve(target === undefined ? { kind: 'negative' } : { kind: 'hit', target })
    },
    fill(entry) {
      const found = readLive(entry.code)
      const hasLease = found !== undefined && 'lease' in found && found.lease === entry.lease
      if (hasLease) {
        const { code, target } = entry
        entries.set(code, { target, untilMs: nowMs() + lifeMsOf(entry, random) })
      }
      return Promise.resolve(hasLease)
    },
    invalidate(code) {
      entries.delete(code)
      return Promise.resolve()
    },
  }
}
