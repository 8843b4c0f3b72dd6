// The floor for the limiter: a bare process that counts the same descriptors in Redis, with one
// script per call over ioredis with automatic pipelining; no gRPC, rules, metrics or deadlines.
import { Redis } from 'ioredis'
import { CLIENTS, descriptorsOf, type Shape } from './ratelimit-calls.ts'
import { quantilesOf } from './report.ts'

/** The task of the floor. */
export interface LimitFloorTask {
  readonly redisPort: number
  readonly shape: Shape
  readonly inFlight: number
  readonly ms: number
}

/** The figures of a task. */
export interface LimitFloorSpan {
  readonly responses: number
  readonly elapsedMs: number
  readonly cpuUs: number
  readonly p50Ms: number
  readonly p99Ms: number
}

const CALLS_MAX = 4_000_000
const WINDOW_MS = '60000'
/** Counts one hit on each key, in windows that start at their first hit. */
const script = `local counts = {}
for i = 1, #KEYS do
  counts[i] = redis.call('INCRBY', KEYS[i], 1)
  if counts[i] == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
end
return counts`

async function count(task: LimitFloorTask): Promise<LimitFloorSpan> {
  const redis = new Redis({ port: task.redisPort, enableAutoPipelining: true, protocol: 2 })
  const sha = String(await redis.script('LOAD', script))
  const keys = Array.from({ length: CLIENTS }, (_, client) =>
    descriptorsOf(task.shape, client).map((entries) => `bench:${entries.join(':')}`),
  )
  const latenciesMs = new Float64Array(CALLS_MAX)
  let sent = 0
  let completed = 0
  const cpuBefore = process.cpuUsage()
  const startMs = performance.now()
  const endMs = startMs + task.ms
  const worker = async () => {
    for (let nowMs = performance.now(); nowMs < endMs && sent < CALLS_MAX;) {
      const mine = keys[sent++ % CLIENTS] ?? []
      await redis.evalsha(sha, mine.length, ...mine, WINDOW_MS)
      const thenMs = performance.now()
      latenciesMs[completed++] = thenMs - nowMs
      nowMs = thenMs
    }
  }
  await Promise.all(Array.from({ length: task.inFlight }, worker))
  const elapsedMs = performance.now() - startMs
  const { user, system } = process.cpuUsage(cpuBefore)
  redis.disconnect()
  const quantile = quantilesOf(latenciesMs, completed)
  const latencies = { p50Ms: quantile(0.5), p99Ms: quantile(0.99) }
  return { responses: completed, elapsedMs, cpuUs: user + system, ...latencies }
}

process.on('message', (task: LimitFloorTask) => {
  void count(task).then((span) => process.send?.(span))
})
process.on('disconnect', () => process.exit())
