// The shared caches of links, each under the one contract.
import { jest } from '@jest/globals'
import { createMetrics } from '../../src/process/metrics.ts'
import { createMemoryLinkCache } from '../../src/stores/memory/link-cache.ts'
import { openReadyCache } from '../component/link-cache-use.ts'
import { clientOf, startCluster, startRedis } from '../parts/redis.ts'
import { defineLinkCacheTests, type LinkCacheCase } from './link-cache.ts'

/** Lets every key of a server grow older. */
async function age(client: ReturnType<typeof clientOf>, ms: number): Promise<void> {
  for (const key of await client.keys('*')) await client.pexpire(key, (await client.pttl(key)) - ms)
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
      return Promise.resolve({ cache, pass, close: () => Promise.resolve() })
    },
  },
  {
    name: 'redis',
    async open() {
      const server = await startRedis()
      const { cache } = await openReadyCache(`redis://127.0.0.1:${String(server.port)}`)
      const client = clientOf(server.port)
      return {
        cache,
        pass: (ms) => age(client, ms),
        async close() {
          client.disconnect()
          await cache.close()
          await server.close()
        },
      }
    },
  },
  {
    name: 'redis cluster',
    async open() {
      const nodes = await startCluster()
      const list = nodes.map(({ port }) => `127.0.0.1:${String(port)}`).join(',')
      const { cache } = await openReadyCache(`redis+cluster://${list}`, createMetrics())
      const clients = nodes.map(({ port }) => clientOf(port))
      return {
        cache,
        async pass(ms) {
          for (const client of clients) await age(client, ms)
        },
        async close() {
          for (const client of clients) client.disconnect()
          await cache.close()
          for (const node of nodes) await node.close()
        },
      }
    },
  },
]

jest.setTimeout(SETUP_MS_MAX)
caches.forEach(defineLinkCacheTests)
