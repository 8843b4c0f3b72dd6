// The distributed service with a file of API keys: Cassandra, two Redis, two create pods behind an
// Envoy with a limiter that has rules for keys, a create pod that requires keys, and two
// redirect pods. All of them send spans, and write their logs to files.
import { hash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateApiKey } from '../../../src/create/change-api-keys.ts'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { reservePorts } from '../../dependencies/free-ports.ts'
import { componentOfNode } from '../../stack/component.ts'
import { type LogFile, logFileOf } from '../../stack/log-files.ts'
import { type PreparedLinks, prepareLinks } from '../../stack/prepare-links.ts'
import { type Edge, startEdge } from '../../stack/start-edge.ts'
import {
  type LimiterPod,
  type ServingPod,
  startLimiterPod,
  startRedisPod,
  startServingPod,
} from '../../stack/start-pods.ts'
import { tracingEnvironment } from '../../stack/tracing-environment.ts'
import { type SpanSink, startSpanSink } from '../span-sink.ts'

/** A key of a client. */
export interface ClientKey {
  readonly name: string
  readonly creatorId: string
  readonly secret: string
}

/** The running service. */
export interface KeyedWorld extends Pick<PreparedLinks, 'startRefill'> {
  readonly keys: readonly ClientKey[]
  /** The value of API_KEYS. */
  readonly keyFile: string
  readonly edge: Edge
  /** Those behind Envoy, and the one that requires keys. */
  readonly creates: readonly ServingPod[]
  readonly requiring: ServingPod
  readonly redirects: readonly ServingPod[]
  readonly limiter: LimiterPod
  readonly redisPorts: Readonly<Record<'cache' | 'counters', number>>
  readonly cassandra: CassandraCluster
  readonly logs: readonly LogFile[]
  stop(): Promise<void>
}

const CODES = 60_000
const REDIS_MEGABYTES = 256
const PORTS = 20
/** Keys with their own limit: a rules file has at most 1 MiB. */
const RULES_MAX = 2500
const shippedRules = new URL('../../../envoy/rate-limits.yaml', import.meta.url)

/** Generates keys. */
export function createClientKeys(count: number): readonly ClientKey[] {
  return Array.from({ length: count }, (_, i) => {
    return { name: `client-${i}`, creatorId: `${i + 1}`, secret: generateApiKey() }
  })
}

/** Starts it with these keys. `onExport` is called with each export of spans. */
export async function startKeyedWorld(given: {
  keys: readonly ClientKey[]
  onExport: (body: Buffer) => void
}): Promise<KeyedWorld> {
  const closing: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const close of closing.splice(0).reverse()) await close()
  }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-keyed-'))
    closing.push(() => rm(folder, { recursive: true, force: true }))
    const { keys } = given
    const sink = await startSpanSink(given.onExport)
    closing.push(() => sink.stop())
    const world = await startAll({ folder, keys, sink, closing })
    return { ...world, keys, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface StartContext {
  readonly folder: string
  readonly keys: readonly ClientKey[]
  readonly sink: SpanSink
  readonly closing: (() => Promise<unknown>)[]
}

async function startAll({ folder, keys, sink, closing }: StartContext) {
  const keyFile = join(folder, 'keys', 'api-keys.ndjson')
  await writeKeyFiles(folder, keyFile, keys)
  const ports = [...(await reservePorts(PORTS))]
  const nextPort = () => ports.shift() ?? 0
  const started = async <P extends { stop(): Promise<void> }>(starting: Promise<P>) => {
    const component = await starting
    closing.push(() => component.stop())
    return component
  }
  const redis = (name: 'cache' | 'counters') =>
    started(startRedisPod(name, { folder, port: nextPort(), megabytes: REDIS_MEGABYTES }))
  const [cache, counters] = [await redis('cache'), await redis('counters')]
  const cassandra = await started(startCassandra({ nodes: 1 }))
  const { env, startRefill } = await prepareLinks({ cassandra, folder, codes: CODES })
  const edgePort = nextPort()
  const baseUrl = `http://127.0.0.1:${edgePort}`
  const at = (ordinal: number) => ({ ordinal, folder, port: nextPort(), adminPort: nextPort() })
  const serving = (role: 'create' | 'redirect', ordinal: number, more = {}) => {
    const own = { BASE_URL: baseUrl, REDIS_URL: `redis://127.0.0.1:${cache.port}` }
    const all = { ...env, ...own, ...tracingEnvironment(role, sink), LOG_LEVEL: 'trace', ...more }
    return started(startServingPod(role, { ...at(ordinal), env: all }))
  }
  const limiter = await started(
    startLimiterPod({
      ...at(1),
      ...{ rulesRoot: join(folder, 'rules'), redisPort: counters.port, baseUrl, replicas: 1 },
      more: { ...tracingEnvironment('ratelimit', sink), LOG_LEVEL: 'trace' },
    }),
  )
  const [create1, create2, requiring] = await Promise.all([
    serving('create', 1, { API_KEYS: keyFile }),
    serving('create', 2, { API_KEYS: keyFile }),
    serving('create', 3, { API_KEYS: keyFile, API_KEY_REQUIRED: 'true' }),
  ])
  const creates = [create1, create2]
  const redirects = await Promise.all([serving('redirect', 1), serving('redirect', 2)])
  const endpoints = (all: readonly { readonly port: number }[]) =>
    all.map(({ port }) => ({ host: '127.0.0.1', port }))
  const edge = await startEdge({
    ...{ ordinal: 1, folder, baseUrl, trustedHops: 1, tracingPort: sink.grpcPort },
    ports: { http: edgePort, metrics: nextPort(), admin: nextPort(), drain: nextPort() },
    redirectEndpoints: endpoints(redirects),
    createEndpoints: endpoints(creates),
    limiterEndpoints: endpoints([limiter]),
  })
  closing.push(
    () => edge.sidecar.stop(),
    () => edge.envoy.stop(),
  )
  const ours = [cache, counters, limiter, ...creates, requiring, ...redirects]
  const names = [...ours, edge.envoy, edge.sidecar].map(({ name }) => name)
  const logs = [...names, 'envoy-1-access'].map((name) => ({ name, path: logFileOf(folder, name) }))
  const nodeLogs = cassandra.nodes.map((node, place) => {
    return { name: componentOfNode(node, place, cassandra.port).name, path: node.logPath }
  })
  return {
    ...{ keyFile, edge, creates, requiring, redirects, limiter, cassandra, startRefill },
    ...{ redisPorts: { cache: cache.port, counters: counters.port }, logs: [...logs, ...nodeLogs] },
  }
}

/** Writes the list of keys, and the rules of the limiter with limits for the first keys. */
async function writeKeyFiles(
  folder: string,
  keyFile: string,
  keys: readonly ClientKey[],
): Promise<void> {
  await mkdir(join(folder, 'keys'))
  await mkdir(join(folder, 'rules', 'config'), { recursive: true })
  const hashed = keys.map((key) => ({ ...key, hash: `sha256:${hash('sha256', key.secret)}` }))
  const lines = hashed.map(({ name, creatorId, hash: digest }) => {
    return `${JSON.stringify({ name, creator_id: creatorId, hash: digest })}\n`
  })
  await writeFile(keyFile, lines.join(''), { mode: 0o600 })
  const rules = await readFile(shippedRules, 'utf8')
  const [block = ''] = /^ +- key: api_key\n(?: {8}.*\n)+/m.exec(rules) ?? []
  const sample = `sha256:${'0'.repeat(64)}`
  if (!block.includes(sample)) throw new Error('the shipped rules have no sample of an API key')
  const blocks = hashed.slice(0, RULES_MAX).map(({ hash: digest }) => block.replace(sample, digest))
  const own = rules.replace(block, blocks.join(''))
  await writeFile(join(folder, 'rules', 'config', 'rate-limits.yaml'), own)
}
