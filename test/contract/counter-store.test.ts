// The stores of counters, each under the one contract.
import { createMemoryCounterStore } from '../../src/stores/memory/counter-store.ts'
import { connectRedis } from '../../src/stores/redis/connection.ts'
import { createRedisCounterStore } from '../../src/stores/redis/counter-store.ts'
import { waitFor } from '../component/wait-for.ts'
import { startRedis } from '../parts/redis.ts'
import { type CounterStoreCase, defineCounterStoreTests } from './counter-store.ts'

function fakeClock() {
  let nowUs = 0
  return {
    nowUs: () => nowUs,
    setNowUs: (to: number) => {
      nowUs = to
    },
  }
}

const stores: readonly CounterStoreCase[] = [
  {
    name: 'memory',
    open() {
      const { nowUs, setNowUs } = fakeClock()
      const store = createMemoryCounterStore({ nowUs })
      return Promise.resolve({ store, setNowUs, close: () => Promise.resolve() })
    },
  },
  {
    name: 'redis',
    async open() {
      const { nowUs, setNowUs } = fakeClock()
      const server = await startRedis()
      const connection = connectRedis(
        {
          target: { kind: 'single', host: '127.0.0.1', port: server.port },
          database: 0,
          timeoutMs: 5000,
        },
        { onUp: () => undefined, onDown: () => undefined },
      )
      await waitFor('Redis', () => connection.isUp())
      const store = createRedisCounterStore({ connection, keyPrefix: 'test:', nowUs })
      return {
        store,
        setNowUs,
        async close() {
          store.close()
          await server.close()
        },
      }
    },
  },
]

stores.forEach(defineCounterStoreTests)
