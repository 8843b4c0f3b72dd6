// Redirects of links that only Redis has cached, compared with bare node:http and one GET over
// ioredis, in turns on one core. There are so many links that the process evicts each from its
// memory before the next request for it.
import { keyOf } from '../../src/stores/redis/link-cache-entry.ts'
import { startRole } from '../../test/kit/processes/role-process.ts'
import { startCassandra } from '../../test/dependencies/cassandra.ts'
import { startRedis } from '../../test/dependencies/redis.ts'
import { compare } from './compare.ts'
import { fillCache, filledCode } from './fill-links.ts'
import { startFloor } from './floor-process.ts'
import { redirectLoad, sampleResponse } from './redirect-load.ts'
import type { RedisFloorTask } from './redirect-redis-floor.ts'
import { moveToGeneratorCore, onServerCore } from './pinning.ts'
import { type BenchOptions, conditionsOf, repetitionOf, type Report } from './report.ts'

const GOAL = 0.85
const LINKS = 200_000

/** Runs the benchmark. */
export async function benchRedirectRedis(options: BenchOptions): Promise<Report> {
  moveToGeneratorCore()
  const conditions = { ...conditionsOf(), ...repetitionOf(options) }
  const stops: (() => Promise<void>)[] = []
  try {
    const cassandra = await startCassandra({ nodes: 1, isProductionJvm: true })
    stops.unshift(() => cassandra.stop())
    const redis = await startRedis()
    stops.unshift(() => redis.close())
    await fillCache(redis.port, LINKS)
    const codes = Array.from({ length: LINKS }, (_, i) => filledCode(i))
    const ours = await startRole({
      role: 'redirect',
      wrapper: onServerCore,
      env: {
        PORT: '0',
        ADMIN_PORT: '0',
        BASE_URL: 'http://s.example',
        CASSANDRA_CONTACT_POINTS: cassandra.contactPoints.join(','),
        CASSANDRA_PORT: String(cassandra.port),
        CASSANDRA_LOCAL_DC: cassandra.localDc,
        CASSANDRA_KEYSPACE: 'system', // not queried
        REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      },
    })
    stops.unshift(() => ours.stop())
    const floor = startFloor('redirect-redis-floor.ts')
    stops.unshift(() => floor.stop())
    const port = Number(ours.ready['port'])
    const sample = await sampleResponse(`http://127.0.0.1:${port}/${codes[0] ?? ''}`)
    const task: RedisFloorTask = { ...sample, redisPort: redis.port, prefix: keyOf('') }
    const reply = (await floor.request(task)) as { port: number }
    return await compare({
      bench: 'redirect-redis',
      goal: GOAL,
      floor: { name: 'node:http + GET', pid: floor.pid, load: redirectLoad(reply.port, codes) },
      ours: { name: 'redirect', pid: ours.pid, load: redirectLoad(port, codes) },
      options,
      conditions: { ...conditions, links: LINKS },
    })
  } finally {
    for (const stop of stops) await stop()
  }
}
