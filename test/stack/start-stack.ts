// The whole distributed service on this machine: Cassandra, two Redis, two pods of each role, two
// limiters, and Envoy with its sidecar. When it stops, it leaves no process and no file.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Stop, stopInTurn } from '../../src/process/stop.ts'
import { type CassandraCluster, startCassandra } from '../dependencies/cassandra.ts'
import { findEnvoy } from '../dependencies/envoy.ts'
import type { Job } from '../kit/processes/role-job.ts'
import { reservePorts } from '../dependencies/free-ports.ts'
import { type LogFile, logFileOf } from './log-files.ts'
import { type Component, componentOfNode } from './component.ts'
import { type PreparedLinks, prepareLinks } from './prepare-links.ts'
import { ADMIN_TOKEN } from './serving-role.ts'
import { EDGES_MAX, rulesOf, stackAllowance } from './stack-allowance.ts'
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
  /** Whether Cassandra's JVM has its production settings, for benchmarks. @default false */
  readonly isProductionJvm?: boolean
  /** Memory limit of the cache. @default 64 */
  readonly cacheMegabytes?: number
  /** Codes in the pool. @default 20_000 */
  readonly codes?: number
  /** Pods of each role, for benchmarks. @default 2 */
  readonly pods?: number
  /** Worker threads of each Envoy. @default 1 */
  readonly envoyWorkers?: number
  /** Port of Envoy. @default any free port */
  readonly port?: number
  /** Trusted proxies before Envoy that set X-Forwarded-For. @default 0 */
  readonly trustedHops?: number
  /** Whether the edges admit an allowance without a call to the limiter. @default false */
  readonly hasAllowance?: boolean
  /** Content of the limiters' rules file. @default envoy/rate-limits.yaml */
  readonly rules?: string
  /** Receives the spans of the pods; an edge sends spans only if it starts with `isTraced`. */
  readonly collector?: Collector
  /** Aborts the start, which then throws. */
  readonly signal?: AbortSignal
  /** Called with the description of each step. */
  readonly onStep?: (step: string) => void
}

/** A stack that is ready. */
export interface Stack {
  /** The URL of Envoy. */
  readonly url: string
  readonly port: number
  readonly edge: Edge
  readonly creates: readonly ServingPod[]
  readonly redirects: readonly ServingPod[]
  readonly limiters: readonly LimiterPod[]
  readonly cache: Component & { readonly port: number }
  readonly counters: Component & { readonly port: number }
  readonly cassandra: CassandraCluster
  readonly cassandraNodes: readonly Component[]
  /** All components, in the order in which they were started. */
  readonly components: readonly Component[]
  /** The bearer token that the admin API of `create` requires. */
  readonly adminToken: string
  /** Folder of the logs, except those of Cassandra. */
  readonly folder: string
  readonly logs: readonly LogFile[]
  /** Starts another Envoy and its sidecar before the same pods; `stop` stops it too. */
  startEdge(options?: EdgeOverrides): Promise<Edge>
  /** Starts a refill Job, which fills the pool up to `target` codes. */
  startRefill(target: number): Job
  /** Replaces the limiters' rules file; the limiters reload it themselves. */
  writeRules(text: string): Promise<void>
  /** Stops all components and deletes their files. */
  stop(): Promise<void>
}

/** Options of another edge. */
interface EdgeOverrides {
  readonly trustedHops?: number
  /** @default as in the options of the stack */
  readonly hasAllowance?: boolean
  /** Whether it never calls the limiter and denies nothing, for benchmarks. @default false */
  readonly isUnlimited?: boolean
  /** Whether it traces every request; needs a collector. @default false */
  readonly isTraced?: boolean
}

const CODES = 20_000
const REDIS_MEGABYTES = 64
const PODS = 2
const POD_ROLES = 3

/** Shared by the steps of the start. */
interface StartContext {
  readonly options: StackOptions
  readonly folder: string
  readonly baseUrl: string
  readonly port: number
  /** The next free port. */
  readonly nextPort: () => number
  /** Functions that stop the components, called in reverse order. */
  readonly closing: Stop[]
  readonly step: (step: string) => void
}

/** Starts the stack. If that fails, stops what it started and throws the reason. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const closing: Stop[] = []
  const stop = () => stopInTurn(closing.splice(0).reverse())
  try {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-stack-'))
    closing.push(() => rm(folder, { recursive: true, force: true }))
    const { pods = PODS } = options
    const ports = [...(await reservePorts(2 * POD_ROLES * pods + 2 + 4 * EDGES_MAX))]
    const nextPort = () => ports.shift() ?? 0
    const port = options.port ?? nextPort()
    const baseUrl = `http://127.0.0.1:${String(port)}`
    const step = (description: string) => {
      options.signal?.throwIfAborted()
      options.onStep?.(description)
    }
    return await startAll({ options, folder, baseUrl, port, nextPort, closing, step }, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function startAll(context: StartContext, stop: Stop): Promise<Stack> {
  const { options, folder, port, closing, step } = context
  step('locating Envoy, Redis and Cassandra; installing what is missing')
  await findEnvoy()
  const redis = async (name: 'cache' | 'counters', megabytes: number) => {
    const component = await startRedisPod(name, { folder, port: context.nextPort(), megabytes })
    closing.push(() => component.stop())
    return component
  }
  const cache = await redis('cache', options.cacheMegabytes ?? REDIS_MEGABYTES)
  const counters = await redis('counters', REDIS_MEGABYTES)
  step(`starting Cassandra, ${String(options.cassandraNodes)} node(s)`)
  const cassandra = await unlessAborted(
    startCassandra({
      nodes: options.cassandraNodes,
      isProductionJvm: options.isProductionJvm === true,
    }),
    options.signal,
  )
  closing.push(() => cassandra.stop())
  step('creating tables and codes')
  const links = await prepareLinks({ cassandra, folder, codes: options.codes ?? CODES })
  step('starting the pods')
  const pods = await startPods(context, { links, cache: cache.port, counters: counters.port })
  const edges: Edge[] = []
  const openEdge = async (more: EdgeOverrides & { port?: number } = {}) => {
    const ordinal = edges.length + 1
    const edge = await startEdgeOf(context, { pods, ordinal, ...more })
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
  const cassandraNodes = cassandra.nodes.map((node, at) =>
    componentOfNode(node, at, cassandra.port),
  )
  const ours = [cache, counters, ...limiters, ...creates, ...redirects]
  const components = [...cassandraNodes, ...ours, edge.envoy, edge.sidecar]
  return {
    ...{ url: edge.url, port, edge, creates, redirects, limiters, cache, counters },
    ...{ cassandra, cassandraNodes, components, folder, adminToken: ADMIN_TOKEN },
    logs: logsOf(folder, { cassandra, names: [...ours, edge.envoy, edge.sidecar] }),
    startEdge: openEdge,
    startRefill: (target) => links.startRefill({ target }),
    writeRules: pods.writeRules,
    stop,
  }
}

/** Awaits `starting` unless aborted: its processes are then killed when our process exits. */
async function unlessAborted<T>(starting: Promise<T>, signal: AbortSignal | undefined) {
  const aborted = new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', () => {
      reject(new Error('the start was aborted'))
    })
  })
  return Promise.race([starting, aborted])
}

function logsOf(
  folder: string,
  { cassandra, names }: { cassandra: CassandraCluster; names: readonly Component[] },
): LogFile[] {
  const nodes = cassandra.nodes.map(({ logPath }, ordinal) => {
    return { name: `cassandra-${String(ordinal + 1)}`, path: logPath }
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
  { options, folder, baseUrl, nextPort, closing }: StartContext,
  given: { links: PreparedLinks; cache: number; counters: number },
): Promise<Pods> {
  const rulesRoot = join(folder, 'rules')
  await mkdir(join(rulesRoot, 'config'), { recursive: true })
  const writeRules = (text: string) =>
    writeFile(join(rulesRoot, 'config', 'rate-limits.yaml'), text)
  const { rules, hasAllowance = false } = options
  await writeRules(await rulesOf({ rules, hasAllowance }))
  const env = {
    ...given.links.env,
    BASE_URL: baseUrl,
    REDIS_URL: `redis://127.0.0.1:${String(given.cache)}`,
  }
  const started = async <P extends Component>(starting: Promise<P>) => {
    const pod = await starting
    closing.push(() => pod.stop())
    return pod
  }
  const at = (ordinal: number) => ({ ordinal, folder, port: nextPort(), adminPort: nextPort() })
  const tracing = (role: TracedRole) => tracingEnvironment(role, options.collector)
  const { pods = PODS } = options
  const limits = { rulesRoot, redisPort: given.counters, baseUrl, replicas: pods }
  const limiter = (ordinal: number) =>
    started(startLimiterPod({ ...at(ordinal), ...limits, more: tracing('ratelimit') }))
  const serving = (role: 'create' | 'redirect', ordinal: number) =>
    started(startServingPod(role, { ...at(ordinal), env: { ...env, ...tracing(role) } }))
  // One role at a time: with two cores this is faster than starting all pods concurrently.
  const each = <P>(start: (ordinal: number) => Promise<P>) =>
    Promise.all(Array.from({ length: pods }, (_, at) => start(at + 1)))
  const limiters = await each(limiter)
  const creates = await each((ordinal) => serving('create', ordinal))
  const redirects = await each((ordinal) => serving('redirect', ordinal))
  return { creates, redirects, limiters, writeRules }
}

function startEdgeOf(
  { options, folder, baseUrl, nextPort }: StartContext,
  given: { pods: Pods; ordinal: number; port?: number } & EdgeOverrides,
): Promise<Edge> {
  const { pods, ordinal } = given
  const endpoints = (all: readonly { readonly port: number }[]) =>
    all.map((pod) => ({ host: '127.0.0.1', port: pod.port }))
  return startEdge({
    ...{ ordinal, folder, baseUrl, workers: options.envoyWorkers ?? 1 },
    trustedHops: given.trustedHops ?? options.trustedHops ?? 0,
    ...((given.hasAllowance ?? options.hasAllowance) === true && {
      allowance: stackAllowance.edge,
    }),
    ...(given.isUnlimited === true && { isUnlimited: true }),
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
