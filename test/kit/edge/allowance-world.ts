// Two Envoys with the allowance, a limiter and Redis, each behind a proxy, and the faults of each.
import { readFile } from 'node:fs/promises'
import { lowerRedirectRule, splitRule } from '../../../envoy/allowance.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type FaultProxy, startFaultProxy } from '../fault-proxy.ts'
import { type Limiter, startLimiter } from '../ratelimit/limiter.ts'
import { type Edge, type Pod, startEdge, startPod } from './edge.ts'

/** The rule of redirects. */
export const rule = { burst: 40, perSecond: 20 } as const
const allowance = { burst: 5, perMinute: 120 }
/** The number of Envoys. */
export const EDGES = 2
const split = splitRule(rule, { allowance, buckets: EDGES })
/** The rule of the limiter. */
const lowered = split.limiter
/** The rule of the limiter while it is changed. */
export const lowest = { burst: lowered.burst - 8, perSecond: lowered.perSecond - 4 }
/** `X-RateLimit-Remaining` of responses within the allowance. */
export const MARK = 999_999
/** Longer than in production, as this machine may be busy; a slow component exceeds them. */
const ENVOY_TIMEOUT = '0.6s'
const LIMITER_DEADLINE_MS = 500
const SLOW_MS = 1000

/** Everything that runs. */
export interface AllowanceWorld {
  readonly edges: (Edge | undefined)[]
  readonly redis: RedisServer
  readonly limiterProxy: FaultProxy
  readonly redisProxy: FaultProxy
  readonly pod: Pod
  limiter: Limiter
  /** Called when an Envoy restarts without the buckets of its clients. */
  onRestart: (at: number, given: { readonly allowance: number }) => void
}

/** A fault and its recovery. */
export interface Fault {
  readonly start: (world: AllowanceWorld) => Promise<void> | void
  readonly end: (world: AllowanceWorld) => Promise<void> | void
  /** Whether the counters may be lost or ignored, as without the allowance: one more rule. */
  readonly losesCounters?: boolean
}

const killEnvoy = (at: number): Fault => ({
  start: (world) => {
    const edge = world.edges[at]
    if (edge !== undefined) process.kill(edge.envoy.pid, 'SIGKILL')
  },
  end: async (world) => {
    await world.edges[at]?.stop()
    world.edges[at] = undefined
    const edge = await startEnvoyOf(world)
    world.onRestart(at, { allowance: allowance.burst })
    world.edges[at] = edge
  },
})

/** Every fault by its name. */
export const allowanceFaults: Readonly<Record<string, Fault>> = {
  'the first Envoy killed': killEnvoy(0),
  'the second Envoy killed': killEnvoy(1),
  'limiter killed': {
    start: async ({ limiter }) => {
      limiter.child.kill('SIGKILL')
      await limiter.exited
    },
    end: async (world) => {
      const { grpcPort } = world.limiter
      await world.limiter.stop()
      world.limiter = await startLimiterOf(world.redisProxy.port, grpcPort)
    },
  },
  'limiter hangs': {
    start: ({ limiter }) => void limiter.child.kill('SIGSTOP'),
    end: ({ limiter }) => void limiter.child.kill('SIGCONT'),
  },
  'limiter slow': {
    start: ({ limiterProxy }) => {
      limiterProxy.delay(SLOW_MS)
    },
    end: ({ limiterProxy }) => limiterProxy.heal(),
  },
  'rules changed': {
    start: async ({ limiter }) => limiter.writeRules(await rulesText(lowest)),
    end: async ({ limiter }) => limiter.writeRules(await rulesText()),
  },
  'Redis killed': {
    start: ({ redis }) => redis.kill(),
    end: ({ redis }) => redis.restart(),
    losesCounters: true,
  },
  'Redis hangs': {
    start: ({ redis }) => {
      redis.stop()
    },
    end: ({ redis }) => {
      redis.resume()
    },
    losesCounters: true,
  },
  'Redis slow': {
    start: ({ redisProxy }) => {
      redisProxy.delay(SLOW_MS)
    },
    end: ({ redisProxy }) => redisProxy.heal(),
    losesCounters: true,
  },
}

async function rulesText(limit = lowered): Promise<string> {
  const shipped = await readFile(
    new URL('../../../envoy/rate-limits.yaml', import.meta.url),
    'utf8',
  )
  return lowerRedirectRule(shipped, limit)
}

async function startLimiterOf(redisPort: number, grpcPort: number): Promise<Limiter> {
  const env = {
    GRPC_PORT: String(grpcPort),
    LIMIT_REPLICAS: '1',
    LIMIT_DEADLINE_MS: String(LIMITER_DEADLINE_MS),
    REDIS_TIMEOUT: '2s',
    RUNTIME_WATCH_ROOT: 'true',
  }
  return startLimiter({ rules: await rulesText(), redisPort, env })
}

function startEnvoyOf({
  pod,
  limiterProxy,
}: Pick<AllowanceWorld, 'pod' | 'limiterProxy'>): Promise<Edge> {
  return startEdge({
    podPort: pod.port,
    limiterPorts: [limiterProxy.port],
    limiterTimeout: ENVOY_TIMEOUT,
    settings: { ...split.edge, allowanceRemaining: MARK, accessLogPath: '' },
  })
}

/** Starts everything. */
export async function startAllowanceWorld(): Promise<AllowanceWorld> {
  const redis = await startRedis()
  const redisProxy = await startFaultProxy({ to: { host: '127.0.0.1', port: redis.port } })
  const limiter = await startLimiterOf(redisProxy.port, await freePort())
  const limiterProxy = await startFaultProxy({ to: { host: '127.0.0.1', port: limiter.grpcPort } })
  const pod = await startPod()
  const edges: Edge[] = []
  for (let n = 0; n < EDGES; n++) edges.push(await startEnvoyOf({ pod, limiterProxy }))
  const onRestart = () => undefined
  return { edges, redis, redisProxy, limiter, limiterProxy, pod, onRestart }
}

/** Stops everything. */
export async function stopAllowanceWorld(world: AllowanceWorld): Promise<void> {
  for (const edge of world.edges) await edge?.stop()
  world.pod.close()
  await world.limiterProxy.close()
  await world.limiter.stop()
  await world.redisProxy.close()
  await world.redis.close()
}
