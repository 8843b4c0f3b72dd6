// Runs the contract on every shared link cache.
import { jest } from '@jest/globals'
import { createMemoryLinkCache } from '../kit/stores/memory-link-cache.ts'
import { openReadyCache, TOLERANT_MS_MAX } from '../kit/links/link-cache-use.ts'
import { redisServers } from '../dependencies/redis-servers.ts'
import { clientOf, type RedisServer, startCluster, startRedis } from '../dependencies/redis.ts'
import { defineLinkCacheTests, type LinkCacheCase } from './link-cache.ts'
import { type OnClose, openDependencies } from './open-dependencies.ts'

/** Reduces the TTL of every key on a server. */
async function ageKeys(client: ReturnType<typeof clientOf>, ms: number): Promise<void> {
  for (const key of await client.keys('*')) await client.pexpire(key, (await client.pttl(key)) - ms)
}

/** Opens a cache on these servers. */
async function openOn(servers: readonly RedisServer[], url: string, onClose: OnClose) {
  const { cache } = await openReadyCache(url, { commandMsMax: TOLERANT_MS_MAX })
  onClose(() => cache.close())
  const clients = servers.map(({ port }) => clientOf(port))
  onClose(() => {
    for (const client of clients) client.disconnect()
  })
  const advance = async (ms: number) => {
    for (const client of clients) await ageKeys(client, ms)
  }
  return { cache, advance, usesRealTime: true }
}

/** Redis may have to be installed, and a cluster takes some seconds to form. */
const SETUP_MS_MAX = 400_000

const caches: readonly LinkCacheCase[] = [
  {
    name: 'memory',
    open() {
      let nowMs = 0
      const cache = createMemoryLinkCache({ nowMs: () => nowMs })
      const advance = (ms: number) => {
        nowMs += ms
        return Promise.resolve()
      }
      const close = () => Promise.resolve()
      return Promise.resolve({ cache, advance, usesRealTime: false, close })
    },
  },
  ...redisServers.map(({ name, find }) => ({
    name,
    open: () =>
      openDependencies(async (onClose) => {
        const server = await startRedis([], { program: await find() })
        onClose(() => server.close())
        return openOn([server], `redis://127.0.0.1:${String(server.port)}`, onClose)
      }),
  })),
  {
    name: 'redis cluster',
    open: () =>
      openDependencies(async (onClose) => {
        const servers = await startCluster()
        for (const server of servers) onClose(() => server.close())
        const list = servers.map(({ port }) => `127.0.0.1:${String(port)}`).join(',')
        return openOn(servers, `redis+cluster://${list}`, onClose)
      }),
  },
]

jest.setTimeout(SETUP_MS_MAX)
caches.forEach(defineLinkCacheTests)
