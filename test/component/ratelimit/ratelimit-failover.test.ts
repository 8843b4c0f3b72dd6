// Two replicas of the `ratelimit` role behind Sentinel while the Redis master is killed: every call
// returns its rule's verdict within the deadline, and the replicas share counters soon after the
// election.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { clientOf, FAILOVER_MS_MAX, startSentinel } from '../../dependencies/redis.ts'
import { callsOverDeadline } from '../../kit/ratelimit/calls-over-deadline.ts'
import { type Limiter, startLimiter } from '../../kit/ratelimit/limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { durationWithoutWaits, watchPauses } from '../../kit/watch-pauses.ts'

const TEST_MS_MAX = 2 * FAILOVER_MS_MAX
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
/** Five times the target for the replicas to share a count after a failover. */
const RECOVERY_MS_MAX = 5 * 1000

const rules = `
domain: shop
descriptors:
  - {key: local, rate_limit: {unit: hour, requests_per_unit: 1000000}}
  - {key: allow, rate_limit: {unit: hour, requests_per_unit: 0, on_store_error: allow}}
  - {key: deny, rate_limit: {unit: hour, requests_per_unit: 1000000, on_store_error: deny}}
`
/** The verdict from Redis, and the fallback, by rule. */
const codes = {
  local: { shared: 'OK', fallback: 'OK' },
  allow: { shared: 'OVER_LIMIT', fallback: 'OK' },
  deny: { shared: 'OK', fallback: 'OVER_LIMIT' },
} as const
type Key = keyof typeof codes
const keys = Object.keys(codes) as Key[]

interface Call {
  readonly key: Key
  readonly startedMs: number
  readonly completedMs: number
  /** Its duration, without pauses of this process and waits of the limiter for a CPU. */
  readonly tookMs: number
  readonly code: string
}

let topology: Awaited<ReturnType<typeof startSentinel>>
let replicas: readonly Limiter[]

beforeAll(async () => {
  topology = await startSentinel()
  const redisPort = topology.sentinel.port
  const env = { REDIS_TYPE: 'SENTINEL', REDIS_URL: `master,127.0.0.1:${redisPort}` }
  replicas = await Promise.all([1, 2].map(() => startLimiter({ rules, redisPort, env })))
}, SETUP_MS_MAX)

afterAll(async () => {
  for (const replica of replicas) await replica.stop()
  await topology.close()
}, TEST_MS_MAX)

let values = 0

/** Whether both replicas count in the same store. */
async function isShared(): Promise<boolean> {
  const descriptor = { local: `shared ${++values}` }
  const remaining: number[] = []
  for (const replica of replicas) {
    remaining.push((await replica.decide(descriptor)).statuses[0]?.limitRemaining ?? 0)
  }
  return remaining.join() === '999999,999998'
}

/**
 * Waits until both replicas count in the same store, and return the verdict from it for each key.
 * On a busy machine, single calls exceed the limiter's deadline for Redis.
 */
async function untilShared(): Promise<void> {
  await waitFor('the shared count', isShared)
  for (const replica of replicas) {
    for (const key of keys) {
      await waitFor(`the verdict of ${key} from Redis`, async () => {
        return (await replica.decide({ [key]: 'v' })).overallCode === codes[key].shared
      })
    }
  }
}

/** Calls with each key in turn, one call at a time; `stop` returns all calls. */
function startCalls(replica: Limiter) {
  const calls: Call[] = []
  let isStopping = false
  const run = async () => {
    for (let at = 0; !isStopping; at++) {
      const key = keys[at % keys.length] ?? 'local'
      const startedMs = performance.now()
      let code = ''
      const tookMs = await durationWithoutWaits(replica.pid, async () => {
        code = (await replica.decide({ [key]: 'v' })).overallCode
      })
      calls.push({ key, startedMs, completedMs: performance.now(), tookMs, code })
    }
  }
  const done = run()
  done.catch(() => undefined) // awaited in stop()
  const stop = async () => {
    isStopping = true
    await done
    return calls
  }
  return { stop }
}

/** Kills the master. Returns the time of the kill, and the last time at which no master existed. */
async function failOver(): Promise<{ killedMs: number; noMasterMs: number }> {
  const client = clientOf(topology.replica.port)
  await topology.master.kill()
  const killedMs = performance.now()
  let noMasterMs = killedMs
  const isElected = async () => {
    const queriedMs = performance.now()
    const [role] = (await client.role()) as [string]
    if (role !== 'master') noMasterMs = queriedMs
    return role === 'master'
  }
  await waitFor('a new master', isElected, FAILOVER_MS_MAX)
  client.disconnect()
  return { killedMs, noMasterMs }
}

test(
  'a failover delays no call, and the replicas share the count soon after the election',
  async () => {
    await waitFor('the shared count', isShared)
    const callers = replicas.map(startCalls)
    const { killedMs, noMasterMs } = await failOver()
    const pauses = watchPauses()
    await untilShared()
    const recoveryMs = performance.now() - noMasterMs - pauses.longestMs()
    pauses.stop()
    expect(recoveryMs).toBeLessThan(RECOVERY_MS_MAX)
    const byCaller = await Promise.all(callers.map(({ stop }) => stop()))
    for (const own of byCaller) {
      expect(callsOverDeadline(own.map(({ tookMs }) => tookMs))).toEqual([])
    }
    const calls = byCaller.flat()
    for (const key of keys) {
      const during = calls.filter(
        (call) => call.key === key && call.startedMs > killedMs && call.completedMs < noMasterMs,
      )
      const observed = new Set(during.map(({ code }) => code))
      expect([key, ...observed]).toEqual([key, codes[key].fallback])
    }
  },
  TEST_MS_MAX,
)
