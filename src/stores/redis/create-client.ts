// Creates the driver's client for a standalone Redis, one behind Sentinel, or a Cluster. The client
// reconnects within half a second of Redis's recovery. It queues and retries no commands, except on
// a Cluster: there commands wait for the connections to new nodes, and are resent up to 3 times,
// for example after a redirection.
import type { ConnectionOptions } from 'node:tls'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { RedisConnectionOptions, RedisSecrets, RedisTls } from './connection-options.ts'
import type { HostPort, RedisTarget } from './target.ts'
import { configureSentinelConnections } from './workaround-sentinel-connections.ts'

const RETRY_MS_MAX = 250
/** The first retry after a stable connection, if credentials may change. */
const FAST_RETRY_MS = 2
/** A connection that was ready for longer is stable. */
const STABLE_MS = 1000
const FAILOVER_RETRY_MS = 50
const REDIRECTIONS_MAX = 3
const SLOTS_REFRESH_MS = 5000
const KEEP_ALIVE_MS = 10_000
const CLOSE_MS_MAX = 200

configureSentinelConnections(CLOSE_MS_MAX)

type ServerTarget = Exclude<RedisTarget, { readonly kind: 'cluster' }>

/** Creates a client, which starts to connect. */
export function createClient(options: RedisConnectionOptions): Redis | Cluster {
  const { target } = options
  const isFastAfterLoss = options.secretFiles?.hasCredentials === true
  const client =
    target.kind === 'cluster' ? createCluster(target.nodes, options) : createRedis(target, options)
  onEachNode(client, (node) => {
    delayRetries(node, isFastAfterLoss)
  })
  return client
}

/** Calls `observe` with a client; for a Cluster, with each node before the node connects. */
export function onEachNode(client: Redis | Cluster, observe: (node: Redis) => void): void {
  if (client instanceof Cluster) client.on('+node', observe)
  else observe(client)
}

function createRedis(target: ServerTarget, options: RedisConnectionOptions): Redis {
  const common = {
    ...commonOptions(options),
    db: options.database,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
  }
  if (target.kind === 'sentinel') {
    const { masterName: name, sentinels } = target
    const list = sentinels.map(({ host, port }) => ({ host, port }))
    return new Redis({ ...common, ...sentinelOptions(options), name, sentinels: list })
  }
  if ('path' in target) return new Redis({ ...common, path: target.path })
  return new Redis({ ...common, host: target.host, port: target.port })
}

/** The first retry is delayed by 10 to 20 ms, later ones by up to RETRY_MS_MAX. */
function retryDelayMs(attempt: number): number {
  return randomDelayMs(Math.min(RETRY_MS_MAX, 10 * 2 ** Math.min(attempt, 5)))
}

function randomDelayMs(maxMs: number): number {
  return Math.round(maxMs * (0.5 + Math.random() / 2))
}

/**
 * Delays the retries of one connection. The driver counts its attempts from the last connection;
 * here they are counted from the last stable one, so that the delay grows while Redis accepts
 * connections and drops them immediately.
 */
function delayRetries(node: Redis, isFastAfterLoss: boolean): void {
  let readyAtMs: number | undefined
  let attempts = 0
  node.on('ready', () => {
    readyAtMs = performance.now()
  })
  node.options.retryStrategy = () => {
    const wasStable = readyAtMs !== undefined && performance.now() - readyAtMs > STABLE_MS
    readyAtMs = undefined
    if (wasStable) attempts = 0
    attempts++
    // Redis closes connections when their credentials change: commands wait for the next one.
    return wasStable && isFastAfterLoss ? randomDelayMs(FAST_RETRY_MS) : retryDelayMs(attempts)
  }
}

/** The driver's options for these secrets; it reads them each time that it connects. */
export function secretOptions({ auth, sentinelAuth, tls }: RedisSecrets) {
  const security = tls === undefined ? {} : { tls: tlsOptions(tls), sentinelTLS: tlsOptions(tls) }
  // An empty name means the default user, an empty password means no AUTH.
  return {
    username: auth?.username ?? '',
    password: auth?.password ?? '',
    sentinelUsername: sentinelAuth?.username ?? '',
    sentinelPassword: sentinelAuth?.password ?? '',
    ...security,
  } as const satisfies RedisOptions
}

function commonOptions(options: RedisConnectionOptions) {
  const { timeoutMs } = options
  return {
    ...secretOptions(options),
    protocol: 2,
    connectTimeout: timeoutMs,
    disconnectTimeout: CLOSE_MS_MAX,
    socketTimeout: timeoutMs,
    keepAlive: KEEP_ALIVE_MS,
    noDelay: true,
    connectionName: 'curtail',
    disableClientInfo: true,
    enableReadyCheck: true,
    maxLoadingRetryTime: RETRY_MS_MAX,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableAutoPipelining: false,
    lazyConnect: false,
    // After a failover the connected Redis may have become a replica.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
  } as const satisfies RedisOptions
}

function sentinelOptions({ timeoutMs, tls }: RedisConnectionOptions) {
  return {
    ...(tls === undefined ? {} : { enableTLSForSentinelMode: true }),
    role: 'master',
    sentinelCommandTimeout: timeoutMs,
    sentinelRetryStrategy: retryDelayMs,
    sentinelReconnectStrategy: retryDelayMs,
    failoverDetector: true,
  } as const satisfies RedisOptions
}

function createCluster(nodes: readonly HostPort[], options: RedisConnectionOptions): Cluster {
  const startNodes = nodes.map(({ host, port }) => ({ host, port }))
  return new Cluster(startNodes, {
    enableOfflineQueue: false,
    enableReadyCheck: true,
    scaleReads: 'master',
    clusterRetryStrategy: retryDelayMs,
    clusterNodeRetryStrategy: retryDelayMs,
    maxRedirections: REDIRECTIONS_MAX,
    retryDelayOnFailover: FAILOVER_RETRY_MS,
    retryDelayOnClusterDown: FAILOVER_RETRY_MS,
    retryDelayOnTryAgain: FAILOVER_RETRY_MS,
    slotsRefreshTimeout: options.timeoutMs,
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    redisOptions: commonOptions(options),
  })
}

function tlsOptions({ ca, cert, key, isHostChecked }: RedisTls): ConnectionOptions {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(isHostChecked ? {} : { checkServerIdentity: () => undefined }),
  }
}
