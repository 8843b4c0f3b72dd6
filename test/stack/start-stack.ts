// The whole distributed service on this machine: Cassandra, two Redis, two of each pod, two
// limiters, and Envoy with its sidecar before them. Leaves no process and no file behind.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { type CassandraCluster, startCassandra } from '../parts/cassandra.ts'
import { findEnvoy } from '../parts/envoy.ts'
import type { Job } from '../component/role-job.ts'
import { claimPorts } from '../parts/free-ports.ts'
import { type LogFile, logFileOf } from './log-files.ts'
import type { Part } from './part.ts'
import { type PreparedLinks, prepareLinks } from './prepare-links.ts'
import { ADMIN_TOKEN } from './serving-role.ts'
import { type Edge, startEdge } from './start-edge.ts'
import {
  type LimiterPod,
  type ServingPod,
  startLimiterPod,
  startRedisPod,
  startServingPod,
} from './start-pods.ts'
import { type Collector, type TracedRole, tracingEnvironment } from './tracing-environment.ts'

/** How to start the stack. */
export interface StackOptions {
  readonly cassandraNodes: 1 | 3
  /** Whether Cassandra's JVM is to be as in production, for what is measured. @default false */
  readonly isProductionJvm?: boolean
  /** What the cache may hold. @default 64 */
  readonly cacheMegabytes?: number
  /** Codes in the pool. @default 20_000 */
  readonly codes?: number
  /** Where Envoy listens. @default any free port */
  readonly port?: number
  /** Proxies before Envoy whose X-Forwarded-For is believed. @default 0 */
  readonly trustedHops?: number
  /** The text of the limiters' rules file. @default envoy/rate-limits.yaml */
  readonly rules?: string
  /** Where the pods send spans; an edge sends any only where it is started so. */
  readonly collector?: Collector
  /** Ends the start, which then throws. */
  readonly signal?: AbortSignal
  /** Told what is being done. */
  readonly onStep?: (step: string) => void
}

/** A stack that is ready. */
export interface Stack {
  /** Where Envoy listens. */
  readonly url: string
  readonly port: number
  readonly edge: Edge
  readonly creates: readonly ServingPod[]
  readonly redirects: readonly ServingPod[]
  readonly limiters: readonly LimiterPod[]
  readonly cache: Part & { readonly port: number }
  readonly counters: Part & { readonly port: number }
  readonly cassandra: CassandraCluster
  readonly cassandraNodes: readonly Part[]
  /** All of them, in the order in which they were started. */
  readonly parts: readonly Part[]
  /** What the admin API of `create` requires. */
  readonly adminToken: string
  /** Folder of the logs of all but Cassandra. */
  readonly folder: string
  readonly logs: readonly LogFile[]
  /** Starts another Envoy with its sidecar before the same pods; `stop` ends it too. */
  startEdge(options?: EdgeChoice): Promise<Edge>
  /** Starts a refill Job, which fills the pool up to so many codes. */
  startRefill(target: number): Job
  /** Puts other rules in place of the limiters'; they find them by themselves. */
  writeRules(text: string): Promise<void>
  /** Ends all of it and removes what it left behind. */
  stop(): Promise<void>
}

/** What may be chosen of another edge. */
interface EdgeChoice {
  readonly trustedHops?: number
  /** Whether it traces every request; needs a collector. @default false */
  readonly isTraced?: boolean
}

const CODES = 20_000
const REDIS_MEGABYTES = 64
/** Ports of all pods and of five edges. */
const PORTS = 2 * 6 + 2 + 4 * 5
const shippedRules = new URL('../../envoy/rate-limits.yaml', import.meta.url)

/** What the steps of the start share. */
interface Ground {
  readonly options: StackOptions
  readonly folder: string
  readonly baseUrl: string
  readonly port: number
  /** The next free port. */
  readonly nextPort: () => number
  /** What ends with the stack, the last one first. */
  readonly closing: Stop[]
  readonly step: (step: string) => void
}

/** Starts it. Throws why it does not start, after it has ended what had been started. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const closing: Stop[] = []
  const stop = () => stopInTurn(closing.splice(0).reverse())
  try {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-stack-'))
    closing.push(() => rm(folder, { recursive: true, force: true }))
    const ports = [...(await claimPorts(PORTS))]
    const nextPort = () => ports.shift() ?? 0
    const port = options.port ?? nextPort()
    const baseUrl = `http://127.0.0.1:${String(port)}`
    const step = (what: string) => {
      options.signal?.throwIfAborted()
      options.onStep?.(what)
    }
    return await startAll({ options, folder, baseUrl, port, nextPort, closing, step }, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function startAll(ground: Ground, stop: Stop): Promise<Stack> {
  const { options, folder, port, closing, step } = ground
  step('looking for Envoy, Redis and Cassandra, which are fetched where they are not there')
  await findEnvoy()
  const redis = async (name: 'cache' | 'counters', megabytes: number) => {
    const part = await startRedisPod(name, { folder, port: ground.nextPort(), megabytes })
    closing.push(() => part.stop())
    return part
  }
  const cache = await redis('cache', options.cacheMegabytes ?? REDIS_MEGABYTES)
  const counters = await redis('counters', REDIS_MEGABYTES)
  step(`starting ${String(options.cassandraNodes)} of Cassandra`)
  const cassandra = await unlessAborted(
    startCassandra({
      nodes: options.cassandraNodes,
      isProductionJvm: options.isProductionJvm === true,
    }),
    options.signal,
  )
  closing.push(() => cassandra.stop())
  step('making tables and codes')
  const links = await prepareLinks({ cassandra, folder, codes: options.codes ?? CODES })
  step('starting the pods')
  const pods = await startPods(ground, { links, cache: cache.port, counters: counters.port })
  const edges: Edge[] = []
  const openEdge = async (more: EdgeChoice & { port?: number } = {}) => {
    const place = edges.length + 1
    const edge = await startEdgeOf(ground, { pods, place, ...more })
    edges.push(edge)
    closing.push(
      () => edge.sidecar.stop(),
      () => edge.envoy.stop(),
    )
    return edge
  }
  step('starting Envoy')
  const edge = await openEdge({ port })
  const { creates, redirects, limiters } = pods
  const cassandraNodes = cassandra.nodes.map((node, at) => partOfNode(node, at, cassandra.port))
  const ours = [cache, counters, ...limiters, ...creates, ...redirects]
  const parts = [...cassandraNodes, ...ours, edge.envoy, edge.sidecar]
  return {
    ...{ url: edge.url, port, edge, creates, redirects, limiters, cache, counters },
    ...{ cassandra, cassandraNodes, parts, folder, adminToken: ADMIN_TOKEN },
    logs: logsOf(folder, { cassandra, names: [...ours, edge.envoy, edge.sidecar] }),
    startEdge: openEdge,
    startRefill: (target) => links.startRefill({ target }),
    writeRules: pods.writeRules,
    stop,
  }
}

/** What `starting` gives; where the start is ended it ends by itself, with our process. */
async function unlessAborted<T>(starting: Promise<T>, signal: AbortSignal | undefined) {
  const aborted = new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', () => {
      reject(new Error('the start was ended'))
    })
  })
  return Promise.race([starting, aborted])
}

function logsOf(
  folder: string,
  { cassandra, names }: { cassandra: CassandraCluster; names: readonly Part[] },
): LogFile[] {
  const nodes = cassandra.nodes.map(({ logPath }, place) => {
    return { name: `cassandra-${String(place + 1)}`, path: logPath }
  })
  const ours = [...names.map(({ name }) => name), 'envoy-1-access']
  return [...nodes, ...ours.map((name) => ({ name, path: logFileOf(folder, name) }))]
}

interface Pods {
  readonly creates: readonly ServingPod[]
  readonly redirects: readonly ServingPod[]
  readonly limiters: readonly LimiterPod[]
  readonly writeRules: (text: string) => Promise<void>
}

async function startPods(
  { options, folder, baseUrl, nextPort, closing }: Ground,
  given: { links: PreparedLinks; cache: number; counters: number },
): Promise<Pods> {
  const rulesRoot = join(folder, 'rules')
  await mkdir(join(rulesRoot, 'config'), { recursive: true })
  const writeRules = (text: string) =>
    writeFile(join(rulesRoot, 'config', 'rate-limits.yaml'), text)
  await writeRules(options.rules ?? (await readFile(shippedRules, 'utf8')))
  const env = {
    ...given.links.env,
    BASE_URL: baseUrl,
    REDIS_URL: `redis://127.0.0.1:${String(given.cache)}`,
  }
  const started = async <P extends Part>(starting: Promise<P>) => {
    const pod = await starting
    closing.push(() => pod.stop())
    return pod
  }
  const at = (place: number) => ({ place, folder, port: nextPort(), adminPort: nextPort() })
  const tracing = (role: TracedRole) => tracingEnvironment(role, options.collector)
  const limits = { rulesRoot, redisPort: given.counters, baseUrl, replicas: 2 }
  const limiter = (place: number) =>
    started(startLimiterPod({ ...at(place), ...limits, more: tracing('ratelimit') }))
  const serving = (role: 'create' | 'redirect', place: number) =>
    started(startServingPod(role, { ...at(place), env: { ...env, ...tracing(role) } }))
  // Two at a time: a machine with two cores starts six slower than that.
  const limiters = await Promise.all([limiter(1), limiter(2)])
  const creates = await Promise.all([serving('create', 1), serving('create', 2)])
  const redirects = await Promise.all([serving('redirect', 1), serving('redirect', 2)])
  return { creates, redirects, limiters, writeRules }
}

function startEdgeOf(
  { options, folder, baseUrl, nextPort }: Ground,
  given: { pods: Pods; place: number; port?: number } & EdgeChoice,
): Promise<Edge> {
  const { pods, place } = given
  const endpoints = (all: readonly { readonly port: number }[]) =>
    all.map((pod) => ({ host: '127.0.0.1', port: pod.port }))
  return startEdge({
    ...{ place, folder, baseUrl },
    trustedHops: given.trustedHops ?? options.trustedHops ?? 0,
    ...(given.isTraced === true && { tracingPort: options.collector?.grpcPort ?? 0 }),
    ports: {
      http: given.port ?? nextPort(),
      metrics: nextPort(),
      admin: nextPort(),
      drain: nextPort(),
    },
    redirectEndpoints: endpoints(pods.redirects),
    createEndpoints: endpoints(pods.creates),
    limiterEndpoints: endpoints(pods.limiters),
  })
}

function partOfNode(node: CassandraCluster['nodes'][number], place: number, port: number): Part {
  return {
    name: `cassandra-${String(place + 1)}`,
    where: `CQL ${node.address}:${String(port)}, log ${node.logPath}`,
    pid: node.pid,
    kill: () => node.kill(),
    pause: () => {
      node.pause()
    },
    resume: () => {
      node.resume()
    },
    stop: () => node.kill(),
    restart: () => node.restart(),
  }
}
