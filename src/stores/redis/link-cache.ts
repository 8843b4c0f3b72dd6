// The shared cache of links in Redis: readers fill it by a lease (here called permit), writers
// delete. Each step is one atomic command, so that it holds for any number of processes, however
// slow they are; test/model/cache.test.ts explores it. Never read from replicas.
import { randomUUID } from 'node:crypto'
import { type CacheAnswer, type LinkCache, lifeMsOf, PERMIT_MS } from '../../links/link-cache.ts'
import { decodeEntry, encodeEntry, encodePermit, keyOf } from './link-cache-entry.ts'

/** What Redis is asked; each rejects with StoreError where it did not answer in time. */
export interface LinkCacheCommands {
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
  /** Told of an entry that could not be read, and was deleted. */
  readonly onUnreadable: () => void
  readonly newPermit?: () => string
  readonly random?: () => number
}

const noted = () => undefined
const nothing: CacheAnswer = { kind: 'unknown', permit: undefined }

/** Makes the cache over its commands. */
export function createRedisLinkCache(options: RedisLinkCacheOptions): LinkCache {
  const { commands, onUnreadable, newPermit = randomUUID, random = Math.random } = options
  const readAs = (key: string, value: string): CacheAnswer | Promise<CacheAnswer> => {
    const seen = decodeEntry(value)
    if (seen.kind !== 'unreadable') return seen
    onUnreadable()
    return commands.del(key).then(() => nothing)
  }
  const askForPermit = async (key: string): Promise<CacheAnswer> => {
    const permit = newPermit()
    const value = encodePermit(permit)
    const isOurs = await commands.putIfAbsent({ key, value, ms: PERMIT_MS })
    return isOurs ? { kind: 'unknown', permit } : nothing
  }
  return {
    look(code) {
      const key = keyOf(code)
      return commands
        .get(key)
        .then((value) => (value === null ? askForPermit(key) : readAs(key, value)))
    },
    fill(entry) {
      const { code, permit, target } = entry
      return commands.replace({
        key: keyOf(code),
        from: encodePermit(permit),
        value: encodeEntry(target),
        ms: lifeMsOf(entry, random),
      })
    },
    forget: (code) => commands.del(keyOf(code)).then(noted),
  }
}
