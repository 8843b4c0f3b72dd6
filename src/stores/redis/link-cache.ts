// The shared cache of links in Redis: readers fill it by a lease (here called permit), writers
// delete. Each step is one atomic command, so that it holds for any number of processes, however
// slow they are; test/model/cache.test.ts explores it. Never read from replicas.
import { randomUUID } from 'node:crypto'
import { type CacheAnswer, type LinkCache, lifeMsOf, PERMIT_MS } from '../../links/link-cache.ts'
import {
  decodeEntry,
  encodeEntry,
  encodePermit,
  type InvalidReason,
  keyOf,
} from './link-cache-entry.ts'

/** What Redis is asked; each rejects with StoreError where it did not answer in time. */
export interface LinkCacheCommands {
  /** The value, one character for each byte: also of what is no text. */
  get(key: string): Promise<string | null>
  /** Puts a value for `ms` where there is none; whether it did. */
  putIfAbsent(entry: { key: string; value: string; ms: number }): Promise<boolean>
  /** Puts `value` for `ms` in the place of `from`; whether `from` was there. */
  replace(entry: { key: string; from: string; value: string; ms: number }): Promise<boolean>
  del(key: string): Promise<unknown>
}

/** What the cache works with. */
export interface RedisLinkCacheOptions {
  readonly commands: LinkCacheCommands
  /** Called for each entry that was read and is not used. */
  readonly onInvalid: (reason: InvalidReason) => void
  readonly newPermit?: () => string
  readonly random?: () => number
}

const noted = () => undefined
const nothing: CacheAnswer = { kind: 'unknown', permit: undefined }

/** Makes the cache over its commands. */
export function createRedisLinkCache(options: RedisLinkCacheOptions): LinkCache {
  const { commands, onInvalid, newPermit = randomUUID, random = Math.random } = options
  /** Leaves a lease with `put`, which succeeds for one of all who try. */
  const lease = async (put: (value: string) => Promise<boolean>): Promise<CacheAnswer> => {
    const permit = newPermit()
    return (await put(encodePermit(permit))) ? { kind: 'unknown', permit } : nothing
  }
  const read = (code: string, value: string): CacheAnswer | Promise<CacheAnswer> => {
    const seen = decodeEntry(code, value)
    if (seen.kind !== 'invalid') return seen
    onInvalid(seen.reason)
    // Only the value that was read is dropped: what another process has put there since stays.
    return lease((next) =>
      commands.replace({ key: keyOf(code), from: value, value: next, ms: PERMIT_MS }),
    )
  }
  const leaseAbsent = (key: string) =>
    lease((value) => commands.putIfAbsent({ key, value, ms: PERMIT_MS }))
  return {
    look(code) {
      const key = keyOf(code)
      return commands
        .get(key)
        .then((value) => (value === null ? leaseAbsent(key) : read(code, value)))
    },
    fill(entry) {
      const { code, permit, target } = entry
      return commands.replace({
        key: keyOf(code),
        from: encodePermit(permit),
        value: encodeEntry(code, target),
        ms: lifeMsOf(entry, random),
      })
    },
    forget: (code) => commands.del(keyOf(code)).then(noted),
  }
}
