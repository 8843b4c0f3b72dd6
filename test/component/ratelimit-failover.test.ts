// Two replicas of the real `ratelimit` role behind Sentinel while the master is killed under their
// calls: every call has its rule's answer in time, and soon after the election they count together.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { clientOf, FAILOVER_MS_MAX, startSentinel } from '../parts/redis.ts'
import { lateCalls } from './late-calls.ts'
import { type Limiter, startLimiter } from './limiter.ts'
import { waitFor } from './wait-for.ts'
import { watchPauses } from './watch-pauses.ts'

const TEST_MS_MAX = 2 * FAILOVER_MS_MAX
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
/** Five times as soon as the shared count is to be back. */
const BACK_MS_MAX = 5 * 1000

const rules = `
domain: shop
descriptors:
  - {key: local, rate_limit: {unit: hour, requests_per_unit: 1000000}}
  - {key: allow, rate_limit: {unit: hour, requests_per_unit: 0, on_store_error: allow}}
  - {key: deny, rate_limit: {unit: hour, requests_per_unit: 1000000, on_store_error: deny}}
`
/** By rule: what Redis says, and what is said without it. */
const codes = {
  local: { shared: 'OK', fallback: 'OK' },
  allow: { shared: 'OVER_LIMIT', fallback: 'OK' },
  deny: { shared: 'OK', fallback: 'OVER_LIMIT' },
} as const
type Key = keyof typeof codes
const keys = Object.keys(codes) as Key[]

interface Call {
  readonly key: Key
  readonly begunMs: number
  readonly endedMs: number
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

/** Whether what one of them counts is known to the other. */
async function isShared(): Promise<boolean> {
  const asked = { local: `shared ${++values}` }
  const left: number[] = []
  for (const replica of replicas) {
    left.push((await replica.ask(asked)).statuses[0]?.limitRemaining ?? 0)
  }
  return left.join() === '999999,999998'
}

/**
 * Asks about one key after the other, one call at a time, until it is told to end: then once more
 * about each.
 */
function beginCalls(replica: Limiter) {
  const calls: Call[] = []
  let isEnding = false
  const run = async () => {
    for (let at = 0, left = keys.length; left > 0; at++) {
      if (isEnding) left--
      const key = keys[at % keys.length] ?? 'local'
      const begunMs = performance.now()
      const { overallCode: code } = await replica.ask({ [key]: 'v' })
      calls.push({ key, begunMs, endedMs: performance.now(), code })
    }
  }
  const ended = run()
  ended.catch(() => undefined) // awaited at the end
  const end = async () => {
    isEnding = true
    await ended
    return calls
  }
  return { end }
}

/** Kills the master; gives when it was gone, and when the other was last seen to be none. */
async function failOver(): Promise<{ goneMs: number; noMasterMs: number }> {
  const client = clientOf(topology.replica.port)
  await topology.master.kill()
  const goneMs = performance.now()
  let noMasterMs = goneMs
  const isElected = async () => {
    const askedMs = performance.now()
    const [role] = (await client.role()) as [string]
    if (role !== 'master') noMasterMs = askedMs
    return role === 'master'
  }
  await waitFor('a new master', isElected, FAILOVER_MS_MAX)
  client.disconnect()
  return { goneMs, noMasterMs }
}

test(
  'a failover holds nobody up, and the count is shared again soon after the election',
  async () => {
    await waitFor('the shared count', isShared)
    const pauses = watchPauses()
    const callers = replicas.map(beginCalls)
    const { goneMs, noMasterMs } = await failOver()
    await waitFor('the shared count', isShared)
    expect(performance.now() - noMasterMs).toBeLessThan(BACK_MS_MAX)
    const byCaller = await Promise.all(callers.map(({ end }) => end()))
    const pauseMs = pauses.longestMs()
    pauses.stop()
    for (const made of byCaller) {
      const tookMs = made.map((call) => call.endedMs - call.begunMs)
      expect(lateCalls(tookMs, pauseMs)).toEqual([])
    }
    const calls = byCaller.flat()
    for (const key of keys) {
      const during = calls.filter(
        (call) => call.key === key && call.begunMs > goneMs && call.endedMs < noMasterMs,
      )
      const said = new Set(during.map(({ code }) => code))
      expect([key, ...said]).toEqual([key, codes[key].fallback])
      const last = calls.filter((call) => call.key === key).at(-1)
      expect([key, last?.code]).toEqual([key, codes[key].shared])
    }
  },
  TEST_MS_MAX,
)
