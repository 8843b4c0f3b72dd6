// The shared link cache in Redis: a reader that holds the lease of a code fills it, and writers
// invalidate it. Each step is one atomic command, so the cache is correct for any number of
// processes, even slow ones; test/model/cache.test.ts verifies it. Never reads from replicas.
import { randomUUID } from 'node:crypto'
import { type CacheResult, type LinkCache, lifeMsOf, LEASE_MS } from '../../links/link-cache.ts'
import {
  decodeEntry,
  encodeEntry,
  encodeLease,
  type InvalidReason,
  keyOf,
} from './link-cache-entry.ts'

/** The Redis commands; each rejects with StoreError if it fails or times out. */
export interface LinkCacheCommands {
  /** The value as a string with one character per byte, even if it is not valid UTF-8. */
  get(key: string): Promise<string | null>
  /** Sets a value for `ms` unless the key exists; resolves to whether it was set. */
  putIfAbsent(entry: { key: string; value: string; ms: number }): Promise<boolean>
  /** Replaces `from` with `value` for `ms`; resolves to whether the value was `from`. */
  replace(entry: { key: string; from: string; value: string; ms: number }): Promise<boolean>
  del(key: string): Promise<unknown>
}

/** Options of the cache. */
export interface RedisLinkCacheOptions {
  readonly commands: LinkCacheCommands
  /** Called for each invalid entry that was read. */
  readonly onInvalid: (reason: InvalidReason) => void
  readonly newLease?: () => string
  readonly random?: () => number
}

const toUndefined = () => undefined
const miss: CacheResult = { kind: 'unknown', lease: undefined }

/** Creates the cache on the given commands. */
export function createRedisLinkCache(options: RedisLinkCacheOptions): LinkCache {
  const { commands, onInvalid, newLease = randomUUID, random = Math.random } = options
  /** Stores a lease with `put`, which succeeds for one of several concurrent readers. */
  const acquireLease = async (put: (value: string) => Promise<boolean>): Promise<CacheResult> => {
    const token = newLease()
    return (await put(encodeLease(token))) ? { kind: 'unknown', lease: token } : miss
  }
  const read = (code: string, value: string): CacheResult | Promise<CacheResult> => {
    const decoded = decodeEntry(code, value)
    if (decoded.kind !== 'invalid') return decoded
    onInvalid(decoded.reason)
    // Replaces only the value that was read: a newer value from another process stays.
    return acquireLease((next) =>
      commands.replace({ key: keyOf(code), from: value, value: next, ms: LEASE_MS }),
    )
  }
  const leaseMissingKey = (key: string) =>
    acquireLease((value) => commands.putIfAbsent({ key, value, ms: LEASE_MS }))
  return {
    lookUp(code) {
      const key = keyOf(code)
      return commands
        .get(key)
        .then((value) => (value === null ? leaseMissingKey(key) : read(code, value)))
    },
    fill(entry) {
      const { code, lease, target } = entry
      return commands.replace({
        key: keyOf(code),
        from: encodeLease(lease),
        value: encodeEntry(code, target),
        ms: lifeMsOf(entry, random),
      })
    },
    invalidate: (code) => commands.del(keyOf(code)).then(toUndefined),
  }
}
