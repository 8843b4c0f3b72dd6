// Links in memory: for tests, and as the simplest reference for a link store.
import type { Link } from '../../../src/links/link.ts'
import type { LinkStore, ScannedStore, SweptStore } from '../../../src/links/link-store.ts'

/** Creates an empty store. Every call settles in the next microtask. */
export function createMemoryLinkStore(): LinkStore & ScannedStore & SweptStore {
  const links = new Map<string, Link>()
  const read = (code: string) => Promise.resolve(links.get(code))
  const change = (code: string, to: (link: Link) => Link) => {
    const link = links.get(code)
    if (link !== undefined) links.set(code, to(link))
    return read(code)
  }
  return {
    insertIfAbsent(link) {
      const existing = links.get(link.code)
      if (existing === undefined) links.set(link.code, link)
      return Promise.resolve((existing ?? link).writerId)
    },
    find: read,
    readSerial: read,
    setDisabled: ({ code, disabledAtMs }) =>
      change(code, (link) =>
        link.deletedAtMs === null
          ? {
              ...link,
              disabledAtMs: disabledAtMs === null ? null : (link.disabledAtMs ?? disabledAtMs),
            }
          : link,
      ),
    erase: ({ code, deletedAtMs }) =>
      change(code, (link) => ({
        ...link,
        longUrl: null,
        deletedAtMs: link.deletedAtMs ?? deletedAtMs,
      })),
    deleteExpired({ beforeMs, max }) {
      const expired = [...links.values()].filter(
        (link) =>
          link.deletedAtMs === null && link.expiresAtMs !== null && link.expiresAtMs < beforeMs,
      )
      for (const link of expired.slice(0, max)) links.delete(link.code)
      return Promise.resolve(Math.min(expired.length, max))
    },
    scan({ after = '', max }) {
      const codes = [...links.keys()].filter((code) => code > after).sort()
      const page = codes.slice(0, max).map((code) => links.get(code))
      return Promise.resolve(page.filter((link) => link !== undefined))
    },
  }
}
