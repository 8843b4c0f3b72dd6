// Runs the contract on every counter store, for the algorithms of the list and one more: the test
// adds it as a line of the list and a script in the folder, and changes nothing else in src.
import { readFileSync } from 'node:fs'
import { expect, jest, test } from '@jest/globals'
import { algorithms, defaultAlgorithm } from '../../src/limits/algorithms.ts'
import { createMemoryCounterStore } from '../../src/stores/memory/counter-store.ts'
import { connectRedis } from '../../src/stores/redis/connection.ts'
import { readLua } from '../../src/stores/redis/read-lua.ts'
import { waitFor } from '../kit/wait-for.ts'
import { redisServers } from '../dependencies/redis-servers.ts'
import { startRedis } from '../dependencies/redis.ts'
import type { CounterStoreCase } from './counter-store.ts'
import { halfWindow } from './half-window.ts'
import { openDependencies } from './open-dependencies.ts'

const extended = [...algorithms, halfWindow]
jest.unstable_mockModule('../../src/limits/algorithms.ts', () => ({
  algorithms: extended,
  defaultAlgorithm,
  findAlgorithm: (name: string) => extended.find((each) => each.name === name),
}))
const halfWindowLua = readFileSync(new URL('half-window.lua', import.meta.url), 'utf8')
jest.unstable_mockModule('../../src/stores/redis/read-lua.ts', () => ({
  readLua: (name: string) => (name === 'half-window' ? halfWindowLua : readLua(name)),
}))
const { createRedisCounterStore } = await import('../../src/stores/redis/counter-store.ts')
const { parseRules } = await import('../../src/limits/parse-rules.ts')
const { describeRules } = await import('../../src/limits/describe-rules.ts')
const { defineCounterStoreTests } = await import('./counter-store.ts')

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
  ...redisServers.map(({ name, find }) => ({
    name,
    open: () =>
      openDependencies(async (onClose) => {
        const { nowUs, setNowUs } = fakeClock()
        const server = await startRedis([], { program: await find() })
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
  })),
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineCounterStoreTests)

function parseOne(limit: string) {
  const rule = `{key: k, rate_limit: {algorithm: half_window, ${limit}}}`
  const text = `domain: d\ndescriptors:\n- ${rule}\n`
  return parseRules([{ name: 'rules.yaml', text }], { mergeDomains: false })
}

test('rules may name the additional algorithm', () => {
  const parsed = parseOne('unit: day, requests_per_unit: 4')
  if (!('rules' in parsed)) throw new Error('the rules have faults')
  expect(describeRules(parsed.rules).rows[0]).toContain('half_window')
  expect(parsed.rules.get('d')?.any.get('k')?.rules).toMatchObject([
    { algorithm: halfWindow, limit: { requests: 4, denyConsumes: true } },
  ])
})

test.each([
  ['unit: day, requests_per_unit: 13', 'half_window cannot count to 13'],
  ['unit: day, requests_per_unit: 101', expect.stringContaining('100')],
  ['unit: day, burst: 1', "burst is only for token_bucket: the algorithm is 'half_window'"],
])('the additional algorithm has its own faults: %s', (limit, message) => {
  expect(parseOne(limit)).toMatchObject({ faults: [{ line: 3, message }] })
})
