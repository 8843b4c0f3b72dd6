// The shared caches of links, each under the one contract.
import { jest } from '@jest/globals'
import { createMemoryLinkCache } from '../../src/stores/memory/link-cache.ts'
import { openReadyCache, PATIENT_MS_MAX } from '../component/link-cache-use.ts'
import { clientOf, type RedisServer, startCluster, startRedis } from '../parts/redis.ts'
import { defineLinkCacheTests, type LinkCacheCase } from './link-cache.ts'
import { type OnClose, openParts } from './open-parts.ts'

/** Lets every key of a server grow older. */
async function age(client: ReturnType<typeof clientOf>, ms: number): Promise<void> {
  for (const key of await client.keys('*')) await client.pexpire(key, (await client.pttl(key)) - ms)
}

/** A cache on these servers. */
async function openOn(servers: readonly RedisServer[], url: string, onClose: OnClose) {
  const { cache } = await openReadyCache(url, { commandMsMax: PATIENT_MS_MAX })
  onClose(() => cache.close())
  const clients = servers.map(({ port }) => clientOf(port))
  onClose(() => {
    for (const client of clients) client.disconnect()
  })
  const pass = async (ms: number) => {
    for (const client of clients) await age(client, ms)
  }
  return { cache, pass, isTimeReal: true }
}

/** A cluster of Redis may have to be installed, and takes some seconds to agree. */
const SETUP_MS_MAX = 400_000

const caches: readonly LinkCacheCase[] = [
  {
    name: 'memory',
    open() {
      let nowMs = 0
      const cache = createMemoryLinkCache({ nowMs: () => nowMs })
      const pass = (ms: number) => {
        nowMs += ms
        return Promise.resolve()
      }
      const close = () => Promise.resolve()
      return Promise.resolve({ cache, pass, isTimeReal: false, close })
    },
  },
  {
    name: 'redis',
    open: () =>
      openParts(async (onClose) => {
        const server = await startRedis()
        onClose(() => server.close())
        return openOn([server], `redis://127.0.0.1:${String(server.port)}`, onClose)
      }),
  },
  {
    name: 'redis cluster',
    open: () =>
      openParts(async (onClose) => {
        const servers = await startCluster()
        for (const server of servers) onClose(() => server.close())
        const list = servers.map(({ port }) => `127.0.0.1:${String(port)}`).join(',')
        return openOn(servers, `redis+cluster://${list}`, onClose)
      }),
  },
]

jest.setTimeout(SETUP_MS_MAX)
caches.forEach(defineLinkCacheTests)
