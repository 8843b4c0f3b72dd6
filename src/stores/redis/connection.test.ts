// How a Redis that cannot be reached is reported.
import { createServer } from 'node:net'
import { afterEach, expect, jest, test } from '@jest/globals'
import { listenOn } from '../../../test/kit/ratelimit/xds-network.ts'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { connectRedis } from './connection.ts'
import type { RedisTarget } from './target.ts'

const START_MS = 60_000
/** Nothing listens on this port. */
const unreachable = { host: '127.0.0.1', port: 1 }

const cleanups: (() => void)[] = []
afterEach(() => {
  jest.restoreAllMocks()
  for (const cleanUp of cleanups.splice(0).reverse()) cleanUp()
})

/** Connects to Redis; resolves to the reported levels once the last one is `warn`. */
async function levelsOf(target: RedisTarget): Promise<string[]> {
  const levels: string[] = []
  const now = performance.now.bind(performance)
  let aheadMs = 0
  jest.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
  const connection = connectRedis(
    { target, database: 0, timeoutMs: 10_000 },
    { onUp: () => undefined, onDown: (_, level) => levels.push(level) },
  )
  cleanups.push(() => {
    connection.close()
  })
  await waitFor('a failure', () => levels.length > 0)
  aheadMs = START_MS // only now: on a busy machine, the first failure takes long
  await waitFor('a warning', () => levels.at(-1) === 'warn')
  return levels
}

test('a refused connection is a warning only after the start period', async () => {
  expect(await levelsOf({ kind: 'single', ...unreachable })).toEqual(['info', 'warn'])
})

test('a connection that the server closes is a warning immediately', async () => {
  const server = createServer((socket) => socket.destroy())
  const { port, close } = await listenOn(0, server)
  cleanups.push(close)
  expect(await levelsOf({ kind: 'single', host: '127.0.0.1', port })).toEqual(['warn'])
})

test.each<RedisTarget>([
  { kind: 'sentinel', masterName: 'main', sentinels: [unreachable] },
  { kind: 'cluster', nodes: [unreachable] },
])('an unreachable $kind is a warning immediately: its cause is unknown', async (target) => {
  expect(await levelsOf(target)).toEqual(['warn'])
})
