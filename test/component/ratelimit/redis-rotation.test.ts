// The `ratelimit` role at 1,000 calls a second while the credentials of its Redis rotate: Redis
// decides every call. The deadline of a call exceeds a pause of the machine.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Redis } from 'ioredis'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type MountedSecret, mountSecret } from '../../kit/mounted-secret.ts'
import { type Limiter, startExactLimiter } from '../../kit/ratelimit/limiter.ts'
import { repeatWhile } from '../../kit/repeat-while.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { watchPauses } from '../../kit/watch-pauses.ts'

const TEST_MS_MAX = 180_000
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
const CALLS_PER_MS = 1
/** A slow machine gets fewer calls, because each one that waits for its response needs memory. */
const WAITING_MAX = 1000
const ROTATIONS = 3
const KILLS = 3
/** If this process, and with it the machine, paused for longer, the rotations are repeated. */
const PAUSE_MS_MAX = 150
const ATTEMPTS_MAX = 3
/** After a connection that was ready for longer, the limiter reconnects at once. */
const STABLE_MS = 1500

const rules = `
domain: shop
descriptors:
  - {key: client, rate_limit: {unit: hour, requests_per_unit: 1000000}}
`

let redis: RedisServer
let admin: Redis
let secret: MountedSecret
let limiter: Limiter

beforeAll(async () => {
  redis = await startRedis(['--user', 'app', 'on', '>start', '~*', '+@all'])
  admin = clientOf(redis.port)
  secret = await mountSecret({ auth: 'app:start' })
  const env = { REDIS_AUTH_FILE: secret.pathOf('auth') }
  limiter = await startExactLimiter({ rules, redisPort: redis.port, env })
}, SETUP_MS_MAX)

afterAll(async () => {
  await limiter.stop()
  admin.disconnect()
  await redis.close()
  await secret.remove()
})

/** Calls at a fixed rate until `change` has completed. Returns the numbers of calls by verdict. */
async function callWhile(change: () => Promise<void>): Promise<Map<string, number>> {
  const verdicts = new Map<string, number>()
  const calls: Promise<void>[] = []
  let waiting = 0
  const call = async (at: number) => {
    waiting++
    const { overallCode } = await limiter.decide({ client: `client ${at % 50}` })
    waiting--
    verdicts.set(overallCode, (verdicts.get(overallCode) ?? 0) + 1)
  }
  const startedMs = performance.now()
  const callDue = async () => {
    const dueCalls = (performance.now() - startedMs) * CALLS_PER_MS
    while (calls.length < dueCalls && waiting < WAITING_MAX) calls.push(call(calls.length))
    await sleep(1)
  }
  await repeatWhile(callDue, change)
  await Promise.all(calls)
  return verdicts
}

/** The decisions by source, from the metrics. */
async function decisionsBySource(): Promise<Record<string, number>> {
  const metrics = await (await fetch(`${limiter.adminUrl}/metrics`)).text()
  const series = metrics.matchAll(/^curtail_limiter_decisions_total\{source="([^"]+)".* (\d+)$/gm)
  const bySource: Record<string, number> = {}
  for (const [, source = '', count] of series) {
    bySource[source] = (bySource[source] ?? 0) + Number(count)
  }
  return bySource
}

const logged = (message: string) => limiter.log.filter(({ msg }) => msg === message).length
const reloads = () => logged('Redis credentials reloaded')

/** Writes the file and waits until the limiter has reloaded it. */
async function swapTo(auth: string): Promise<void> {
  const before = reloads()
  await secret.swap({ auth })
  await waitFor('the reload', () => reloads() > before)
}

async function isConnectedAs(user: string): Promise<boolean> {
  return String(await admin.client('LIST')).includes(` user=${user} `)
}

/** Both passwords are valid until the limiter uses the new one. */
async function rotateWithOverlap(turn: number): Promise<void> {
  await admin.acl('SETUSER', 'app', `>overlap-${turn}`)
  await swapTo(`app:overlap-${turn}`)
  await admin.acl('SETUSER', 'app', 'resetpass', `>overlap-${turn}`)
}

/** The old password is invalid at once, and Redis closes the connections that use it. */
async function rotateWithKill(turn: number): Promise<void> {
  await sleep(STABLE_MS)
  const before = reloads()
  await secret.swap({ auth: `app:kill-${turn}` })
  await admin.acl('SETUSER', 'app', 'resetpass', `>kill-${turn}`)
  for (let kills = 0; kills < KILLS; kills++) {
    const connections = logged('Redis available')
    await admin.client('KILL', 'USER', 'app')
    await waitFor('the next connection', () => logged('Redis available') > connections)
  }
  await waitFor('the reload', () => reloads() > before)
}

/** The limiter becomes another user, and the first one is deleted. */
async function rotateUser(turn: number): Promise<void> {
  await admin.acl('SETUSER', `user-${turn}`, 'on', '>secret', '~*', '+@all')
  await swapTo(`user-${turn}:secret`)
  await admin.acl('DELUSER', 'app')
  expect(await isConnectedAs(`user-${turn}`)).toBe(true)
  await admin.acl('SETUSER', 'app', 'on', `>back-${turn}`, '~*', '+@all')
  await swapTo(`app:back-${turn}`)
  await admin.acl('DELUSER', `user-${turn}`)
}

/** Rotates while calls are decided. Returns their numbers by verdict and by source. */
async function rotate(firstTurn: number) {
  const before = await decisionsBySource()
  const verdicts = await callWhile(async () => {
    for (let turn = firstTurn; turn < firstTurn + ROTATIONS; turn++) {
      await rotateWithOverlap(turn)
      await rotateWithKill(turn)
      await rotateUser(turn)
    }
  })
  const sources = Object.entries(await decisionsBySource())
    .map(([source, count]) => [source, count - (before[source] ?? 0)] as const)
    .filter(([, count]) => count > 0)
  return { verdicts, sources: Object.fromEntries(sources) }
}

test(
  'no rotation causes a decision by fallback',
  async () => {
    let result = { verdicts: new Map<string, number>(), sources: {} }
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const pauses = watchPauses()
      result = await rotate(attempt * ROTATIONS)
      pauses.stop()
      if (pauses.longestMs() < PAUSE_MS_MAX) break
    }
    expect([...result.verdicts.keys()]).toEqual(['OK'])
    expect(result.sources).toEqual({ store: result.verdicts.get('OK') })
    const log = JSON.stringify(limiter.log)
    expect(log).not.toMatch(/overlap-|kill-\d|back-|:secret/)
  },
  TEST_MS_MAX,
)
