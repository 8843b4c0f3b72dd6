// Runs the contract on every counter store.
import { jest } from '@jest/globals'
import { createMemoryCounterStore } from '../../src/stores/memory/counter-store.ts'
import { connectRedis } from '../../src/stores/redis/connection.ts'
import { createRedisCounterStore } from '../../src/stores/redis/counter-store.ts'
import { waitFor } from '../kit/wait-for.ts'
import { startRedis } from '../dependencies/redis.ts'
import { type CounterStoreCase, defineCounterStoreTests } from './counter-store.ts'
import { openDependencies } from './open-dependencies.ts'

/** Redis may have to be installed. */
const SETUP_MS_MAX = 600_000

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
    open: () =>
      openDependencies(async (onClose) => {
        const { nowUs, setNowUs } = fakeClock()
        const server = await startRedis()
        onClose(() => server.close())
        const target = { kind: 'single', host: '127.0.0.1', port: server.port } as const
        const connection = connectRedis(
          { target, database: 0, timeoutMs: 5000 },
          { onUp: () => undefined, onDown: () => undefined },
        )
        const store = createRedisCounterStore({ connection, keyPrefix: 'test:', nowUs })
        onClose(() => {
          store.close()
        })
        await waitFor('Redis', () => connection.isUp())
        return { store, setNowUs }
      }),
  },
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineCounterStoreTests)
